export const firstNames =
  `Anna Bruno Clara David Elena Felix Greta Hugo Irene Jonas Katrin Liam Maria Noah Olivia Peter Quinn Rosa Simon Tessa
Ulrich Vera Walter Xenia Yusuf Zoe Amira Björn Chloé Dušan Émile Françoise Günther Hélène Íris Jürgen Kérstin Léa Mateus
Nóra Øyvind Paweł Renée Søren Tomás Ümit Věra Wojciech Željko Åsa Łukasz Siobhán Nguyễn Aoife Priya Rahul Mei Kenji Yuki
Fatima Omar Leila Samuel Grace Daniel Emma Lucas Sofia Martin Julia Thomas Laura Oscar Ivana Marek Ingrid Pedro Carmen`.split(
    /\s+/,
  );

export const lastNames =
  `Adler Becker Conti Dubois Eriksen Fischer García Hansen Ivanov Jansen Kowalski Larsen Müller Novák Olsen Petrov Quist
Rossi Schmidt Tamm Urban Virtanen Weber Xu Yılmaz Zimmermann Bernard Castillo Dvořák Ångström Fernández Gonçalves Hämäläinen
Jørgensen Kučera Lefèvre Moreau Nagy O'Brien Papadopoulos Říha Šimek Szabó Tanaka Ueda Vögel Wiśniewski Nakamura Patel Singh
Haddad Mansour Johnson Taylor Walker Robinson Clarke Hughes Murphy Kelly Costa Silva Horvat Popescu Andersson Nilsson`.split(
    /\s+/,
  );

export const companyStems =
  `Alder Basalt Cobalt Delta Ember Fjord Granite Harbour Indigo Juniper Kestrel Lumen Meridian Nordlicht Onyx Paragon Quarry
Raven Summit Tidal Umbra Vertex Willow Xylo Yonder Zephyr Amber Birch Cedar Dune Echo Falcon Grove Hazel Iron Jade Krona Linden
Maple Nimbus Orchard Pioneer Quill Ridge Sable Terra Union Vista Wren Polar Aurora Brück Côte Größe Łąka Møller Ålesund Ñandú`.split(
    /\s+/,
  );

export const companyTrades =
  `Analytics Logistics Robotics Foods Energy Systems Health Optics Textiles Marine Software Partners Consulting Materials Media
Packaging Security Mobility Instruments Interiors`.split(/\s+/);

export const companyForms = ["GmbH", "Ltd", "Inc.", "S.A.", "AB", "OÜ", "B.V.", "Sp. z o.o.", "A/S", "LLC"] as const;

export const jobTitles = [
  "Head of Purchasing",
  "Chief Financial Officer",
  "Operations Manager",
  "IT Director",
  "Sales Enablement Lead",
  "Procurement Specialist",
  "Managing Director",
  "Product Owner",
  "Office Manager",
  "Plant Manager",
  "Legal Counsel",
  "Leiterin Einkauf",
] as const;

export const freeMailDomains = ["gmail.com", "outlook.com", "yahoo.com", "web.de", "icloud.com", "seznam.cz"] as const;

export const products = [
  "annual licence",
  "pilot",
  "rollout",
  "renewal",
  "support plan",
  "migration",
  "training days",
  "expansion",
  "framework agreement",
  "hardware refresh",
] as const;

export const lostReasons = ["Price", "Went with a competitor", "No budget this year", "No reply", "Timing"] as const;

export const subjects: Readonly<Record<string, readonly string[]>> = {
  call: ["Intro call", "Call back about pricing", "Check in after the demo", "Discuss contract terms"],
  meeting: ["Kick-off meeting", "Product demo", "Quarterly review", "Technical deep dive", "Verhandlung Rahmenvertrag"],
  email: ["Send the offer", "Send references", "Follow up on the proposal", "Share the security answers"],
  task: ["Prepare the business case", "Update the forecast", "Get legal to review", "Draft the statement of work"],
};

export const noteSentences = [
  "Budget is confirmed for this quarter.",
  "They compare us with two other vendors.",
  "Legal wants changes to the liability clause &amp; the term.",
  "Decision will be taken by the board next month.",
  "Technical contact asked for an API walkthrough.",
  "Preis wurde akzeptiert, Vertrag fehlt noch.",
  "Security questionnaire &lt;v2&gt; has been sent.",
  "Wants a reference customer from the same trade.",
  "Champion is on leave until the end of the month.",
] as const;

export const cities = [
  { locality: "Tallinn", country: "Estonia", route: "Mere puiestee", postal_code: "10111", admin: "Harju maakond" },
  { locality: "Berlin", country: "Germany", route: "Lindenstraße", postal_code: "10969", admin: "Berlin" },
  { locality: "København", country: "Denmark", route: "Nørregade", postal_code: "1165", admin: "Hovedstaden" },
  { locality: "Kraków", country: "Poland", route: "ul. Długa", postal_code: "31-147", admin: "Małopolskie" },
  { locality: "Porto", country: "Portugal", route: "Rua das Flores", postal_code: "4050-262", admin: "Porto" },
  { locality: "Austin", country: "United States", route: "Congress Avenue", postal_code: "78701", admin: "Texas" },
] as const;

export const currencies: readonly (readonly [string, number])[] = [
  ["EUR", 55],
  ["USD", 25],
  ["GBP", 10],
  ["PLN", 5],
  ["JPY", 2],
  ["SEK", 3],
];
