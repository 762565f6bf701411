package cairn.interop;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.zip.GZIPOutputStream;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.SequenceFile.CompressionType;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.compress.BZip2Codec;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.DefaultCodec;
import org.apache.hadoop.util.ReflectionUtils;

/** Local files in the forms that {@code fs -text} unpacks. */
final class Packed {
  private static final Schema LINE =
      SchemaBuilder.record("line").fields().requiredInt("number").requiredString("text").endRecord();

  private Packed() {}

  /** Writes {@code lines} in a form ({@code gz}, {@code bz2}, {@code deflate}, {@code seq}, {@code seq-block} or {@code avro}). */
  static void write(String form, Path file, List<String> lines) throws IOException {
    Configuration conf = new Configuration(false);
    byte[] plain = (String.join("\n", lines) + "\n").getBytes(StandardCharsets.UTF_8);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    switch (form) {
      case "gz" -> {
        try (OutputStream out = new GZIPOutputStream(bytes)) {
          out.write(plain);
        }
      }
      case "bz2" -> compress(new BZip2Codec(), conf, plain, bytes);
      case "deflate" -> compress(new DefaultCodec(), conf, plain, bytes);
      case "seq", "seq-block" -> {
        sequence(form.equals("seq") ? CompressionType.NONE : CompressionType.BLOCK, conf, file, lines);
        return;
      }
      case "avro" -> avro(lines, bytes);
      default -> throw new IllegalArgumentException("unknown form " + form);
    }
    Files.write(file, bytes.toByteArray());
  }

  private static void compress(CompressionCodec codec, Configuration conf, byte[] plain, OutputStream to)
      throws IOException {
    ReflectionUtils.setConf(codec, conf);
    try (OutputStream out = codec.createOutputStream(to)) {
      out.write(plain);
    }
  }

  private static void sequence(CompressionType how, Configuration conf, Path file, List<String> lines)
      throws IOException {
    try (SequenceFile.Writer out =
        SequenceFile.createWriter(
            conf,
            SequenceFile.Writer.file(new org.apache.hadoop.fs.Path(file.toUri())),
            SequenceFile.Writer.keyClass(IntWritable.class),
            SequenceFile.Writer.valueClass(Text.class),
            SequenceFile.Writer.compression(how, new DefaultCodec()))) {
      for (int i = 0; i < lines.size(); i++) {
        out.append(new IntWritable(i), new Text(lines.get(i)));
      }
    }
  }

  private static void avro(List<String> lines, OutputStream to) throws IOException {
    try (DataFileWriter<GenericRecord> out = new DataFileWriter<>(new GenericDatumWriter<>(LINE))) {
      out.create(LINE, to);
      for (int i = 0; i < lines.size(); i++) {
        out.append(new GenericRecordBuilder(LINE).set("number", i).set("text", lines.get(i)).build());
      }
    }
  }
}
