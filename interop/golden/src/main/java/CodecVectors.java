import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.zip.Checksum;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.erasurecode.ECBlock;
import org.apache.hadoop.io.erasurecode.ECBlockGroup;
import org.apache.hadoop.io.erasurecode.ECChunk;
import org.apache.hadoop.io.erasurecode.ErasureCoderOptions;
import org.apache.hadoop.io.erasurecode.coder.HHXORErasureEncoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RSLegacyRawDecoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RSLegacyRawEncoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RSRawDecoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RSRawEncoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RawErasureDecoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RawErasureEncoder;
import org.apache.hadoop.io.erasurecode.rawcoder.XORRawDecoder;
import org.apache.hadoop.io.erasurecode.rawcoder.XORRawEncoder;
import org.apache.hadoop.util.CrcComposer;
import org.apache.hadoop.util.DataChecksum;

/**
 * Writes what Hadoop's raw coders and CRC classes compute to the file that its only argument names;
 * README.md describes the lines.
 */
public final class CodecVectors {
  private static final int[] LENGTHS = {1, 17, 64, 257};
  private static final int LONG_LENGTH = 65536 + 13;
  private static final HexFormat HEX = HexFormat.of();

  private record Schema(String codec, int k, int m) {
    RawErasureEncoder encoder() {
      var options = new ErasureCoderOptions(k, m);
      return switch (codec) {
        case "rs" -> new RSRawEncoder(options);
        case "rs-legacy" -> new RSLegacyRawEncoder(options);
        default -> new XORRawEncoder(options);
      };
    }

    RawErasureDecoder decoder() {
      var options = new ErasureCoderOptions(k, m);
      return switch (codec) {
        case "rs" -> new RSRawDecoder(options);
        case "rs-legacy" -> new RSLegacyRawDecoder(options);
        default -> new XORRawDecoder(options);
      };
    }

    @Override
    public String toString() {
      return codec + " " + k + " " + m;
    }
  }

  public static void main(String[] args) throws Exception {
    System.setOut(new PrintStream(args[0]));
    System.out.println("# Made by interop/golden with Apache Hadoop 3.5.0.");
    List<Schema> schemas = List.of(
        new Schema("rs", 3, 2), new Schema("rs", 6, 3), new Schema("rs", 10, 4),
        new Schema("rs-legacy", 6, 3), new Schema("xor", 2, 1));
    for (Schema schema : schemas) {
      checkDecoder(schema);
      printMatrix(schema);
      printParity(schema);
    }
    // Shapes that no built-in policy has: a user may add them.
    for (Schema schema : List.of(new Schema("rs", 12, 8), new Schema("rs-legacy", 11, 5))) {
      printMatrix(schema);
    }
    for (var type : List.of(DataChecksum.Type.CRC32, DataChecksum.Type.CRC32C)) {
      printCrcs(type);
    }
    printHitchhiker(3, 2);
    printHitchhiker(6, 3);
    printHitchhiker(10, 4);
  }

  /** Hitchhiker's parities: a unit's two halves are the same places of two sub-stripes. */
  private static void printHitchhiker(int k, int m) throws Exception {
    int half = 37;
    ECChunk[] data = new ECChunk[2 * k];
    for (int unit = 0; unit < k; unit++) {
      byte[] bytes = input(unit, 2 * half);
      data[unit] = new ECChunk(Arrays.copyOfRange(bytes, 0, half));
      data[k + unit] = new ECChunk(Arrays.copyOfRange(bytes, half, 2 * half));
    }
    byte[][] parity = new byte[2 * m][half];
    ECChunk[] outputs = Arrays.stream(parity).map(ECChunk::new).toArray(ECChunk[]::new);
    var encoder = new HHXORErasureEncoder(new ErasureCoderOptions(k, m));
    encoder.setConf(new Configuration());
    encoder.calculateCoding(new ECBlockGroup(blocks(k), blocks(m))).performCoding(data, outputs);
    var line = new StringBuilder("hitchhiker-xor " + k + " " + m + " " + 2 * half);
    for (int unit = 0; unit < m; unit++) {
      line.append(' ').append(HEX.formatHex(parity[unit])).append(HEX.formatHex(parity[m + unit]));
    }
    System.out.println(line);
  }

  private static ECBlock[] blocks(int count) {
    ECBlock[] blocks = new ECBlock[count];
    Arrays.setAll(blocks, i -> new ECBlock());
    return blocks;
  }

  /** The coefficients, one column at a time: data unit j is the byte 1, all others are 0. */
  private static void printMatrix(Schema schema) throws Exception {
    byte[] matrix = new byte[schema.k * schema.m];
    for (int j = 0; j < schema.k; j++) {
      byte[][] data = new byte[schema.k][1];
      data[j][0] = 1;
      byte[][] parity = encode(schema, data);
      for (int i = 0; i < schema.m; i++) {
        matrix[i * schema.k + j] = parity[i][0];
      }
    }
    System.out.println("matrix " + schema + " " + HEX.formatHex(matrix));
  }

  private static void printParity(Schema schema) throws Exception {
    for (int length : LENGTHS) {
      var line = new StringBuilder("parity " + schema + " " + length);
      for (byte[] unit : encode(schema, inputs(schema.k, length))) {
        line.append(' ').append(HEX.formatHex(unit));
      }
      System.out.println(line);
    }
    var line = new StringBuilder("parity-crc " + schema + " " + LONG_LENGTH);
    for (byte[] unit : encode(schema, inputs(schema.k, LONG_LENGTH))) {
      line.append(' ').append(hex(crc(DataChecksum.Type.CRC32C, unit)));
    }
    System.out.println(line);
  }

  /** Hadoop's decoder rebuilds every pattern of lost units from what its encoder wrote. */
  private static void checkDecoder(Schema schema) throws Exception {
    byte[][] data = inputs(schema.k, 17);
    byte[][] parity = encode(schema, data);
    List<byte[]> all = new ArrayList<>(Arrays.asList(data));
    all.addAll(Arrays.asList(parity));
    for (int pattern = 1; pattern < 1 << all.size(); pattern++) {
      if (Integer.bitCount(pattern) > schema.m) {
        continue;
      }
      byte[][] units = new byte[all.size()][];
      int[] lost = new int[Integer.bitCount(pattern)];
      for (int unit = 0, next = 0; unit < units.length; unit++) {
        if ((pattern >> unit & 1) == 0) {
          units[unit] = all.get(unit).clone();
        } else {
          lost[next++] = unit;
        }
      }
      byte[][] rebuilt = new byte[lost.length][17];
      schema.decoder().decode(units, lost, rebuilt);
      for (int i = 0; i < lost.length; i++) {
        if (!Arrays.equals(rebuilt[i], all.get(lost[i]))) {
          throw new IllegalStateException(schema + " does not rebuild " + Arrays.toString(lost));
        }
      }
    }
  }

  private static byte[][] encode(Schema schema, byte[][] data) throws Exception {
    byte[][] parity = new byte[schema.m][data[0].length];
    schema.encoder().encode(data, parity);
    return parity;
  }

  private static void printCrcs(DataChecksum.Type type) throws Exception {
    for (int length : new int[] {0, 1, 15, 16, 63, 64, 255, 256, 512, 513, 4096, LONG_LENGTH}) {
      System.out.println("crc " + type + " " + length + " " + hex(crc(type, input(0, length))));
    }
    for (long length : new long[] {0, 1, 511, 512, 1 << 20, 128L << 20, (6L << 40) + 12345}) {
      int a = crc(type, input(1, 100));
      int b = crc(type, input(2, 100));
      var composer = CrcComposer.newCrcComposer(type, 512);
      composer.update(a, 100);
      composer.update(b, length);
      System.out.println("compose " + type + " " + hex(a) + " " + hex(b) + " " + length + " "
          + HEX.formatHex(composer.digest()));
    }
    printChunks(type, 512, 5000);
    printChunks(type, 100, 1000);
  }

  private static void printChunks(DataChecksum.Type type, int chunkLength, int length)
      throws Exception {
    byte[] data = input(0, length);
    var sums = new byte[(length + chunkLength - 1) / chunkLength * 4];
    DataChecksum.newDataChecksum(type, chunkLength)
        .calculateChunkedSums(data, 0, length, sums, 0);
    var composer = CrcComposer.newCrcComposer(type, chunkLength);
    int whole = length / chunkLength * 4;
    composer.update(sums, 0, whole, chunkLength);
    composer.update(sums, whole, sums.length - whole, length % chunkLength);
    System.out.println("chunks " + type + " " + chunkLength + " " + length + " "
        + HEX.formatHex(sums) + " " + HEX.formatHex(composer.digest()));
  }

  private static int crc(DataChecksum.Type type, byte[] data) {
    Checksum checksum = DataChecksum.newDataChecksum(type, 512);
    checksum.update(data, 0, data.length);
    return (int) checksum.getValue();
  }

  private static String hex(int crc) {
    return HEX.toHexDigits(crc);
  }

  private static byte[][] inputs(int count, int length) {
    byte[][] inputs = new byte[count][];
    for (int i = 0; i < count; i++) {
      inputs[i] = input(i, length);
    }
    return inputs;
  }

  private static byte[] input(int number, int length) {
    byte[] bytes = new byte[length];
    long x = number + 1;
    for (int i = 0; i < length; i++) {
      x = x * 6364136223846793005L + 1442695040888963407L;
      bytes[i] = (byte) (x >>> 56);
    }
    return bytes;
  }
}
