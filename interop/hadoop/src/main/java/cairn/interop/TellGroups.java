package cairn.interop;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.Groups;

/** Which groups users are in, as Hadoop's own mapping of the configuration says: a line for each. */
final class TellGroups {
  private TellGroups() {}

  public static void main(String[] users) {
    Groups groups = new Groups(new Configuration());
    for (String user : users) {
      String told;
      try {
        told = String.join(" ", groups.getGroupsSet(user));
      } catch (java.io.IOException none) {
        told = "";
      }
      System.out.println(user + " : " + told);
    }
  }
}
