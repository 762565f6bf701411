package cairn.interop.differential;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hdfs.DFSInotifyEventInputStream;
import org.apache.hadoop.hdfs.inotify.Event;
import org.apache.hadoop.hdfs.inotify.EventBatch;

/** What watchers of a tree are told, as text. */
public final class Events {
  private Events() {}

  /**
   * What {@code stream} tells until a directory is made at {@code end}. Changes of attributes are left out: Hadoop tells
   * them also where nothing has changed.
   */
  static List<String> until(DFSInotifyEventInputStream stream, String end) throws Exception {
    List<String> told = new ArrayList<>();
    while (true) {
      EventBatch batch = stream.poll(30, TimeUnit.SECONDS);
      if (batch == null) {
        told.add("nothing of " + end);
        return told;
      }
      for (Event event : batch.getEvents()) {
        if (event instanceof Event.CreateEvent made && made.getPath().equals(end)) {
          return told;
        }
        if (event.getEventType() != Event.EventType.METADATA) {
          told.add(text(event));
        }
      }
    }
  }

  /** All that an event says, but times. */
  public static String text(Event event) {
    return switch (event.getEventType()) {
      case CREATE -> {
        Event.CreateEvent e = (Event.CreateEvent) event;
        yield "create " + e.getiNodeType() + " " + e.getPath() + " " + e.getOwnerName() + ":"
            + e.getGroupName() + " " + e.getPerms() + " copies " + e.getReplication() + " block "
            + e.getDefaultBlockSize() + " overwrite " + e.getOverwrite() + " link "
            + e.getSymlinkTarget() + " ec " + e.isErasureCoded().orElse(null)
            + (e.getCtime() > 0 ? "" : " without a time");
      }
      case CLOSE -> {
        Event.CloseEvent e = (Event.CloseEvent) event;
        yield "close " + e.getPath() + " " + e.getFileSize()
            + (e.getTimestamp() > 0 ? "" : " without a time");
      }
      case APPEND -> {
        Event.AppendEvent e = (Event.AppendEvent) event;
        yield "append " + e.getPath() + " new block " + e.toNewBlock();
      }
      case RENAME -> {
        Event.RenameEvent e = (Event.RenameEvent) event;
        yield "rename " + e.getSrcPath() + " to " + e.getDstPath();
      }
      case UNLINK -> "unlink " + ((Event.UnlinkEvent) event).getPath();
      case TRUNCATE -> {
        Event.TruncateEvent e = (Event.TruncateEvent) event;
        yield "truncate " + e.getPath() + " " + e.getFileSize();
      }
      case METADATA -> {
        Event.MetadataUpdateEvent e = (Event.MetadataUpdateEvent) event;
        yield "metadata " + e.getPath() + " " + e.getMetadataType() + " mtime " + e.getMtime()
            + " atime " + e.getAtime() + " copies " + e.getReplication() + " owner "
            + e.getOwnerName() + " group " + e.getGroupName() + " mode " + e.getPerms() + " acl "
            + e.getAcls() + " xattr " + e.getxAttrs() + " removed " + e.isxAttrsRemoved();
      }
    };
  }
}
