import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.PasswordCallback;
import javax.security.sasl.AuthorizeCallback;
import javax.security.sasl.RealmCallback;
import javax.security.sasl.Sasl;
import javax.security.sasl.SaslClient;
import javax.security.sasl.SaslServer;
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
