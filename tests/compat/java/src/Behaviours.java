import java.util.concurrent.Callable;

/** Runs one behaviour after another and prints a line for each: name, tab, pass or fail or skip, tab, detail. */
final class Behaviours {
  interface Body {
    void run() throws Exception;
  }

  private static String oneLine(Throwable error) {
    Throwable cause = error;
    while (cause.getCause() != null && cause.getCause() != cause) cause = cause.getCause();
    StackTraceElement at = null;
    for (StackTraceElement each : error.getStackTrace()) {
      if (each.getFileName() != null && each.getModuleName() == null) at = each;
    }
    return (cause + (at == null ? "" : " at " + at.getFileName() + ":" + at.getLineNumber())).replaceAll("\\s+", " ");
  }

  private static void print(String name, String result, String detail) {
    System.out.println(name + "\t" + result + "\t" + detail);
  }

  static void behaviour(String name, Body body) {
    try {
      body.run();
      print(name, "pass", "");
    } catch (Throwable error) {
      print(name, "fail", oneLine(error));
    }
  }

  static void skip(String name, String why) {
    print(name, "skip", why);
  }

  static void same(Object got, Object expected, String what) {
    if (!expected.equals(got)) throw new AssertionError(what + ": expected " + expected + ", got " + got);
  }

  static void holds(boolean is, String what) {
    if (!is) throw new AssertionError(what);
  }

  /** Waits for a condition, with a bound. */
  static void until(String what, Callable<Boolean> condition) throws Exception {
    long end = System.currentTimeMillis() + 30_000;
    while (!condition.call()) {
      if (System.currentTimeMillis() > end) throw new AssertionError("not in time: " + what);
      Thread.sleep(20);
    }
  }
}
