/** What the stories take from the totals asked for. */
export const storyCounts = { organizations: 4, persons: 9, deals: 7, activities: 3, notes: 1 } as const;
