package cairn.interop.differential;

import static cairn.interop.differential.Generator.arg;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.OpenFilesIterator.OpenFilesType;

/** Calls on paths and what is at them, whatever that is. */
final class TreeCalls {
  private final Generator g;

  private TreeCalls(Generator g) {
    this.g = g;
  }

  static void addTo(Generator g) {
    TreeCalls calls = new TreeCalls(g);
    calls.changes();
    calls.listings();
  }

  private String owner(StringBuilder text) {
    return arg(text, g.chance(20) ? null : g.pick(List.of("alice", "bob", "carol", "root", "nobody", "")));
  }

  private void changes() {
    g.add("tree", 16, "mkdirs", t -> {
      String p = g.path(t);
      FsPermission mode = g.permission(t);
      boolean parents = arg(t, g.chance(80));
      return d -> "" + d.name().mkdirs(d.at(p), mode, parents);
    });
    g.add("tree", 5, "delete", t -> {
      String p = g.path(t);
      boolean recursive = arg(t, g.chance(50));
      return d -> "" + d.name().delete(d.at(p), recursive);
    });
    g.add("tree", 7, "rename", t -> {
      String from = g.path(t);
      String to = g.path(t);
      return d -> "" + d.name().rename(d.at(from), d.at(to));
    });
    g.add("tree", 7, "rename2", t -> {
      String from = g.path(t);
      String to = g.path(t);
      Options.Rename option =
          arg(t, g.pick(List.of(Options.Rename.NONE, Options.Rename.OVERWRITE, Options.Rename.TO_TRASH)));
      return d -> {
        d.name().rename2(d.at(from), d.at(to), option);
        return "done";
      };
    });
    g.add("tree", 4, "setPermission", t -> {
      String p = g.path(t);
      FsPermission mode = g.permission(t);
      return d -> {
        d.name().setPermission(d.at(p), mode);
        return "done";
      };
    });
    g.add("tree", 4, "setOwner", t -> {
      String p = g.path(t);
      String user = owner(t);
      String group = owner(t);
      return d -> {
        d.name().setOwner(d.at(p), user, group);
        return "done";
      };
    });
    g.add("tree", 4, "setTimes", t -> {
      String p = g.path(t);
      long m = arg(t, g.chance(20) ? -1L : (long) g.below(1_000_000));
      long a = arg(t, g.chance(20) ? -1L : (long) g.below(1_000_000));
      return d -> {
        d.name().setTimes(d.at(p), m, a);
        return "done";
      };
    });
    g.add("tree", 3, "checkAccess", t -> {
      String p = g.path(t);
      FsAction action = arg(t, g.pick(Arrays.asList(FsAction.values())));
      return d -> {
        d.name().checkAccess(d.at(p), action);
        return "done";
      };
    });
    g.add("tree", 1, "createSymlink", t -> {
      String to = g.path(t);
      String link = g.path(t);
      return d -> {
        d.name().createSymlink(d.at(to), d.at(link), FsPermission.getDirDefault(), false);
        return "done";
      };
    });
    g.add("tree", 1, "getLinkTarget", t -> {
      String p = g.path(t);
      return d -> d.name().getLinkTarget(d.at(p));
    });
  }

  private void listings() {
    g.add("tree", 10, "getFileInfo", t -> {
      String p = g.path(t);
      return d -> Text.status(d.name().getFileInfo(d.at(p)));
    });
    g.add("tree", 2, "getFileLinkInfo", t -> {
      String p = g.path(t);
      return d -> Text.status(d.name().getFileLinkInfo(d.at(p)));
    });
    g.add("tree", 2, "getLocatedFileInfo", t -> {
      String p = g.path(t);
      return d -> Text.status(d.name().getLocatedFileInfo(d.at(p), false));
    });
    g.add("tree", 6, "getListing", t -> {
      String p = g.path(t);
      byte[] after = arg(t, g.pick(List.of("", "a", "bb"))).getBytes();
      boolean located = arg(t, g.chance(30));
      return d -> Text.listing(d.name().getListing(d.at(p), after, located));
    });
    g.add("tree", 1, "getEnclosingRoot", t -> {
      String p = g.path(t);
      return d -> "" + d.name().getEnclosingRoot(d.at(p));
    });
    g.add("tree", 1, "listOpenFiles", t -> {
      String p = g.path(t);
      return d -> {
        List<String> paths = new ArrayList<>();
        var open =
            d.name()
                .listOpenFiles(
                    0,
                    EnumSet.of(OpenFilesType.ALL_OPEN_FILES),
                    d.at(p));
        for (int i = 0; i < open.size(); i++) {
          paths.add(open.get(i).getFilePath() + " " + open.get(i).getClientName());
        }
        return paths.toString();
      };
    });
  }
}
