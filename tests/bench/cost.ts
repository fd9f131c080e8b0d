/** Prints what requests cost in virtual time beside what the design allows; minutes for the large rates. */
import { CostWorld } from "../cost/cost_world.ts";
import {
  ALLOWED,
  type Allowed,
  type Budget,
  BUDGETS,
  LARGE_NODE,
  type Rate,
  RATES,
} from "../cost/rows.ts";

/** Seconds until compaction is in its steady state, and those that count. */
interface Stretch {
  readonly warm: number;
  readonly counted: number;
  readonly scale: number;
}

const STRETCHES: Readonly<Record<Rate, Stretch>> = {
  "1 KiB/s": { warm: 600, counted: 7_200, scale: 1 },
  "1 MiB/s": { warm: 7_200, counted: 7_200, scale: 64 },
  "10 MiB/s": { warm: 3_000, counted: 6_000, scale: 64 },
  "100 MiB/s": { warm: 300, counted: 900, scale: 64 },
};

const number = (value: number) => value.toLocaleString("en-US", { maximumFractionDigits: 0 });
const money = (value: number) => `$${value.toFixed(value < 10 ? 2 : 1)}`;
const triple = ({ puts, gets, dollars }: Allowed) =>
  `${number(puts)} / ${number(gets)} / ${money(dollars)}`;

async function found(rate: Rate, budget: Budget, isLarge: boolean): Promise<Allowed> {
  const { warm, counted, scale } = STRETCHES[rate];
  const world = new CostWorld({
    arrivals: RATES[rate],
    putsPerHour: BUDGETS[budget],
    scale,
    ...(isLarge ? LARGE_NODE : {}),
  });
  await world.start();
  await world.run(warm * 1_000);
  const { puts, gets, dollarsPerMonth: dollars } = await world.hourly(counted * 1_000);
  return { puts, gets, dollars };
}

export async function printCost(rates: readonly string[]): Promise<void> {
  console.log("| rate | spacing | node | PUT/h / GET/h / $ a month | allowed |");
  console.log("| --- | --- | --- | --- | --- |");
  for (const rate of Object.keys(RATES) as Rate[]) {
    if (rates.length > 0 && !rates.includes(rate)) continue;
    const sizes = rate.startsWith("1 ") ? [false] : [false, true];
    for (const budget of Object.keys(BUDGETS) as Budget[]) {
      for (const isLarge of sizes) {
        const cells = [
          rate,
          budget,
          isLarge ? "large" : "default",
          triple(await found(rate, budget, isLarge)),
          triple(ALLOWED[budget][rate]),
        ];
        console.log(`| ${cells.join(" | ")} |`);
      }
    }
  }
}
