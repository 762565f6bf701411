package cairn.interop.differential;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;

/** An audit log that is read while it is written. Calls that ask for names nobody has mark places in it. */
final class Audit {
  /** Lines that are told in other words, see docs/deviations.md, or any number of times. */
  private static final Pattern OTHERWISE =
      Pattern.compile(
          "\tcmd=((add|modify|remove)Cache(Directive|Pool)|listCacheDirectives)\t"
              + "|^allowed=false\t.*\tcmd=unsetErasureCodingPolicy\t"
              + "|^allowed=true\t.*\tcmd=listReencryptionStatus\t");

  private final File file;
  private long position;
  private int marks;

  Audit(File file) {
    this.file = file;
  }

  /** Marks the place where the log is. */
  void mark(ClientProtocol name) throws Exception {
    since(name);
  }

  /** What was told since the last mark, without times. */
  List<String> since(ClientProtocol name) throws Exception {
    String mark = "/audit-mark-" + marks++;
    name.getFileInfo(mark);
    List<String> told = new ArrayList<>();
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (true) {
      for (String line : lines()) {
        String text = line.substring(line.indexOf("audit: ") + "audit: ".length());
        if (text.contains("src=" + mark + "\t")) {
          return told;
        }
        String plain = text.replace('\t', ' ');
        if (!OTHERWISE.matcher(text).find() && !isAskedAgain(plain, told)) {
          told.add(plain);
        }
      }
      if (System.nanoTime() > end) {
        throw new IOException("the audit log " + file + " does not come to " + mark);
      }
      Thread.sleep(0, 200_000);
    }
  }

  /** Whether a test asks again and again until a file is closed, which is not always as often. */
  private static boolean isAskedAgain(String line, List<String> told) {
    return line.contains(" cmd=getfileinfo ")
        && !told.isEmpty()
        && told.get(told.size() - 1).equals(line);
  }

  /** The whole lines that have come. */
  private List<String> lines() throws IOException {
    try (RandomAccessFile in = new RandomAccessFile(file, "r")) {
      byte[] bytes = new byte[(int) (in.length() - position)];
      in.seek(position);
      in.readFully(bytes);
      int whole = bytes.length;
      while (whole > 0 && bytes[whole - 1] != '\n') {
        whole--;
      }
      position += whole;
      return new String(bytes, 0, whole, StandardCharsets.UTF_8).lines().toList();
    }
  }
}
