/** The version of this build; a test keeps it equal to package.json. */
export const VERSION = "0.1.0";
