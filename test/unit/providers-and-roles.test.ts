import { attendeeInWords, dealInWords, world } from "../support/matching-world";

/** Providers of mail and of internet access, of whom no list that can be had has all. */
const PROVIDERS =
  `mweb.co.za ocn.ne.jp a1.net legalmail.it azienda.pec.it stofanet.dk post.tele.dk bredband.net comhem.se kabelbw.de
  alice-dsl.net alice-dsl.de kabelplus.at caiway.nl numericable.fr bbox.fr telefonica.net telepac.pt otenet.gr volny.cz zoznam.sk
  elisanet.fi getmail.no sohu.com 139.com 189.cn hinet.net nifty.com biglobe.ne.jp telkomsa.net iafrica.com sasktel.net
  terra.com.pe riseup.net arubapec.it postecert.it posteo.de duck.com hotmail.se hotmail.no hotmail.com.tr outlook.cz live.se live.no
  yahoo.nl yahoo.ch yahoo.at yahoo.pl yahoo.com.tr yandex.com.tr yandex.kz gmx.es vp.pl interia.eu tlen.pl net.hr siol.net kakao.com`.split(
    /\s+/,
  );
/** Where those who work there have their mailboxes as well. */
const COMPANIES = "telia.com kpn.com vodafone.de magenta.at proximus.be".split(" ");

// Seen red: of thirty providers two customers who are persons of one company made every other customer one of its people, and an
// owner with such a mailbox made colleagues of all.
test("customers of a provider are of no company by that, and no colleagues of an owner who is one", () => {
  const stranger = (domain: string) =>
    attendeeInWords(world(`Jan = jan@${domain} (Bakery); Piet = piet@${domain} (Bakery)`, `new@${domain}`));
  const customer = (domain: string) => attendeeInWords(world("", `new@${domain}`, `anna@${domain}`));
  expect(PROVIDERS.filter((domain) => stranger(domain) !== "BUYER -")).toEqual([]);
  expect(PROVIDERS.filter((domain) => customer(domain) !== "BUYER -")).toEqual([]);
  expect(COMPANIES.filter((domain) => stranger(domain) !== "BUYER -, Bakery DOMAIN_OF_PERSONS")).toEqual([]);
  expect(COMPANIES.filter((domain) => customer(domain) !== "SELLER -")).toEqual([]);
});

const NAMES =
  "alla india paris sydney arin sem per gardner pastor mayor church english chef md pm lt ta cm bd se la mt gm no";
const ROLES =
  "info sales all alle berlin boston accounts bills grants captain ceo hello hi cs ir hr pr it qa ap rh hq uk vertrieb";

// Seen red: the buyer Paris Gardner had a shared address by either name, as had everyone who is known by two initials.
test("names and initials are people's; functions, offices and groups decide no deal", () => {
  const dealOf = (local: string) => dealInWords(world(`Eve = ${local}@acme.de; D1 of Eve`, `${local}@acme.de`));
  expect(NAMES.split(" ").filter((local) => dealOf(local) !== "D1 ONLY_CANDIDATE")).toEqual([]);
  expect(ROLES.split(" ").filter((local) => dealOf(local) !== "choose D1")).toEqual([]);
});
