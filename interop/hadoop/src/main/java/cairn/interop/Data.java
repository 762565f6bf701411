package cairn.interop;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** Reproducible file contents, and their digests. */
final class Data {
  private Data() {}

  /** An endless, seeded sequence of bytes that no coder can mistake for another part of itself. */
  static final class Source extends InputStream {
    private long state;
    private long left;
    private final byte[] block = new byte[64 * 1024];
    private int at = block.length;

    Source(long seed, long length) {
      state = seed * 0x9E3779B97F4A7C15L + 0x1234567;
      left = length;
    }

    private void refill() {
      for (int i = 0; i < block.length; i += 8) {
        // SplitMix64: fast, and a period far beyond any file.
        long z = (state += 0x9E3779B97F4A7C15L);
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        z ^= z >>> 31;
        for (int b = 0; b < 8; b++) {
          block[i + b] = (byte) (z >>> (8 * b));
        }
      }
      at = 0;
    }

    @Override
    public int read() {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] b, int off, int len) {
      if (left == 0) {
        return -1;
      }
      if (at == block.length) {
        refill();
      }
      int n = (int) Math.min(Math.min(len, block.length - at), left);
      System.arraycopy(block, at, b, off, n);
      at += n;
      left -= n;
      return n;
    }
  }

  /** Copies {@code in} to its end into {@code out} and returns the SHA-256 of the bytes. */
  static String copy(InputStream in, OutputStream out) throws IOException {
    MessageDigest sha = sha();
    byte[] buffer = new byte[1 << 20];
    for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
      sha.update(buffer, 0, n);
      out.write(buffer, 0, n);
    }
    return HexFormat.of().formatHex(sha.digest());
  }

  /** The SHA-256 of {@code in} to its end. */
  static String digest(InputStream in) throws IOException {
    return copy(in, OutputStream.nullOutputStream());
  }

  /** The SHA-256 of a local file. */
  static String digest(File file) throws IOException {
    try (InputStream in = new FileInputStream(file)) {
      return digest(in);
    }
  }

  /** The SHA-256 of {@code length} bytes of sequence {@code seed}. */
  static String digest(long seed, long length) throws IOException {
    return digest(new Source(seed, length));
  }

  private static MessageDigest sha() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
