package cairn.interop;

/** What the native library of Hadoop 3.3 looks for in the class that loads it; see {@code native_io.c}. */
final class NativeSettings {
  @SuppressWarnings("unused")
  static boolean workaroundNonThreadSafePasswdCalls = true;

  private NativeSettings() {}
}
