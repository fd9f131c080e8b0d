/** The one cluster of a simulated world. */
export const CLUSTER_ID = "sim";
