import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.PasswordCallback;
import javax.security.sasl.AuthorizeCallback;
import javax.security.sasl.RealmCallback;
import javax.security.sasl.Sasl;
import javax.security.sasl.SaslClient;
import javax.security.sasl.SaslServer;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier.AccessMode;
import org.apache.hadoop.hdfs.security.token.delegation.DelegationTokenIdentifier;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.authentication.util.KerberosName;
import org.apache.hadoop.security.token.SecretManager;

/** Writes what Hadoop 3.5.0 and the JDK's SASL make of tokens and names, one fact a line. */
public class SecurityVectors {
  private static final HexFormat HEX = HexFormat.of();
  private static PrintStream out;

  public static void main(String[] args) throws Exception {
    out = new PrintStream(args[0], StandardCharsets.UTF_8);
    byte[] last = null;
    String[][] names = {{"ann", "", ""}, {"ann@EXAMPLE.COM", "yarn", "oozie/h@EXAMPLE.COM"},
        {"käthe", "r".repeat(200), "x"}};
    long[][] times = {{0, 0, 0, 0}, {1796000000000L, 1796604800000L, 7, 2}, {-1, Long.MIN_VALUE, -5, 1 << 30}};
    for (int i = 0; i < names.length; i++) {
      DelegationTokenIdentifier id = new DelegationTokenIdentifier(
          new Text(names[i][0]), new Text(names[i][1]), new Text(names[i][2]));
      id.setIssueDate(times[i][0]);
      id.setMaxDate(times[i][1]);
      id.setSequenceNumber((int) times[i][2]);
      id.setMasterKeyId((int) times[i][3]);
      last = id.getBytes();
      for (int len : new int[] {8, 32, 100}) {
        byte[] key = new byte[len];
        for (int j = 0; j < len; j++) {
          key[j] = (byte) (j * 7 + len);
        }
        byte[] password = Passwords.of(last, key);
        line("token", hex(names[i][0]), hex(names[i][1]), hex(names[i][2]), "" + times[i][0],
            "" + times[i][1], "" + times[i][2], "" + times[i][3], HEX.formatHex(last),
            HEX.formatHex(key), HEX.formatHex(password));
      }
    }
    blockTokens();
    for (String qop : new String[] {"auth", "auth-int", "auth-conf"}) {
      exchange(qop, last);
    }
    String[] rules = {
      "RULE:[2:$1@$0](nn@EXAMPLE.COM)s/.*/hdfs/\nRULE:[1:$1@$0](.*@OTHER)s/@.*//\nDEFAULT",
      "RULE:[2:$1;$2](^.*;admin$)s/;admin$//\nRULE:[1:$1@$0](.*@UP)s/([^@]*)@.*/x$1y//L",
      "RULE:[1:$1@$0](.*@G)s/@G|o/_/g\nRULE:[2:$2]\nRULE:[1:$1](a.*)",
    };
    String[] principals = {"ann@EXAMPLE.COM", "nn/h.x@EXAMPLE.COM", "ann@OTHER", "bob/admin@OTHER", "ANN@UP",
        "nano@G", "ann", "dn/h@R"};
    System.setProperty("java.security.krb5.realm", "EXAMPLE.COM");
    System.setProperty("java.security.krb5.kdc", "localhost");
    KerberosName.resetDefaultRealm();
    KerberosName.setRuleMechanism("hadoop");
    for (String rule : rules) {
      KerberosName.setRules(rule);
      for (String principal : principals) {
        String user;
        try {
          user = hex(new KerberosName(principal).getShortName());
        } catch (Exception e) {
          user = "-";
        }
        line("name", hex(rule), principal, user);
      }
    }
    out.close();
    System.exit(0);
  }

  /** Both forms of what block tokens say, what proves them, and what Hadoop calls them. */
  private static void blockTokens() throws Exception {
    EnumSet<AccessMode> all = EnumSet.allOf(AccessMode.class);
    Object[][] tokens = {
      {"ann", "BP-1-127.0.0.1-1", 1073741825L, EnumSet.of(AccessMode.READ), new StorageType[0], new String[0], ""},
      {null, null, 0L, EnumSet.noneOf(AccessMode.class), null, null, ""},
      {"k\u00e4the", "BP-2", -9223372036854775792L, all, StorageType.values(),
          new String[] {"DS-1", "", "DS-\u00fc"}, "auth-conf"},
      {"", "BP-1-127.0.0.1-1", -1L, EnumSet.of(AccessMode.COPY, AccessMode.WRITE),
          new StorageType[] {StorageType.SSD, StorageType.SSD}, new String[] {"DS-2"}, "x"},
    };
    long[][] times = {{1796000000000L, 7}, {0, 0}, {Long.MAX_VALUE, -5}, {200, Integer.MIN_VALUE}};
    for (int i = 0; i < tokens.length; i++) {
      for (boolean isProto : new boolean[] {false, true}) {
        Object[] t = tokens[i];
        @SuppressWarnings("unchecked")
        EnumSet<AccessMode> modes = (EnumSet<AccessMode>) t[3];
        StorageType[] types = (StorageType[]) t[4];
        String[] ids = (String[]) t[5];
        BlockTokenIdentifier id = new BlockTokenIdentifier((String) t[0], (String) t[1], (Long) t[2], modes, types, ids, isProto);
        id.setExpiryDate(times[i][0]);
        id.setKeyId((int) times[i][1]);
        id.setHandshakeMsg(((String) t[6]).getBytes(StandardCharsets.UTF_8));
        byte[] key = new byte[] {1, 2, 3, (byte) i, 5, 6, 7, (byte) 200};
        String typeNames = types == null || types.length == 0 ? "-" : Arrays.stream(types).map(Enum::name).collect(Collectors.joining(","));
        String idNames = ids == null || ids.length == 0 ? "-" : Arrays.stream(ids).map(SecurityVectors::hex).collect(Collectors.joining(","));
        String modeNames = modes.isEmpty() ? "-" : modes.stream().map(Enum::name).collect(Collectors.joining(","));
        line("block-token", isProto ? "protobuf" : "legacy", t[0] == null ? "null" : hex((String) t[0]),
            t[1] == null ? "null" : hex((String) t[1]), "" + t[2], modeNames, typeNames, idNames, hex((String) t[6]),
            "" + times[i][0], "" + times[i][1], HEX.formatHex(id.getBytes()), HEX.formatHex(key),
            HEX.formatHex(Passwords.of(id.getBytes(), key)), hex(id.toString()));
      }
    }
  }

  private static void exchange(String qop, byte[] identifier) throws Exception {
    String user = java.util.Base64.getEncoder().encodeToString(identifier);
    String password = java.util.Base64.getEncoder().encodeToString("secret \u00e4".getBytes(StandardCharsets.UTF_8));
    Map<String, String> props = new TreeMap<>();
    props.put(Sasl.QOP, qop);
    props.put(Sasl.SERVER_AUTH, "true");
    SaslServer server = Sasl.createSaslServer("DIGEST-MD5", "", "default", props, c -> answer(c, user, password));
    props.put("com.sun.security.sasl.digest.cipher", "rc4");
    SaslClient client = Sasl.createSaslClient(new String[] {"DIGEST-MD5"}, null, "", "default", props,
        c -> answer(c, user, password));
    byte[] challenge = server.evaluateResponse(new byte[0]);
    byte[] response = client.evaluateChallenge(challenge);
    byte[] last = server.evaluateResponse(response);
    client.evaluateChallenge(last);
    line("digest", qop, HEX.formatHex(identifier), hex("secret \u00e4"), HEX.formatHex(challenge),
        HEX.formatHex(response), HEX.formatHex(last));
    if (qop.equals("auth")) {
      return;
    }
    for (String text : new String[] {"first", "x", "a longer message ".repeat(100)}) {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      line("wrap", qop, hex(text), HEX.formatHex(client.wrap(bytes, 0, bytes.length)),
          HEX.formatHex(server.wrap(bytes, 0, bytes.length)));
    }
  }

  private static void answer(Callback[] callbacks, String user, String password) {
    for (Callback callback : callbacks) {
      if (callback instanceof NameCallback) {
        ((NameCallback) callback).setName(user);
      } else if (callback instanceof PasswordCallback) {
        ((PasswordCallback) callback).setPassword(password.toCharArray());
      } else if (callback instanceof RealmCallback) {
        ((RealmCallback) callback).setText(((RealmCallback) callback).getDefaultText());
      } else if (callback instanceof AuthorizeCallback) {
        ((AuthorizeCallback) callback).setAuthorized(true);
      }
    }
  }

  private static String hex(String text) {
    return text.isEmpty() ? "-" : HEX.formatHex(text.getBytes(StandardCharsets.UTF_8));
  }

  private static void line(String... fields) {
    out.println(String.join(" ", fields));
  }

  /** Makes what a secret manager makes by default. */
  private abstract static class Passwords extends SecretManager<DelegationTokenIdentifier> {
    static byte[] of(byte[] identifier, byte[] key) {
      return SecretManager.createPassword(identifier, SecretManager.createSecretKey(key));
    }
  }
}
