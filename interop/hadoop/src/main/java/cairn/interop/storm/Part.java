package cairn.interop.storm;

/** A replica or unit and its place; {@code id} is its own, not that of its group. */
record Part(long id, int node) {
  private static final int UNITS = 16;

  /** The id of the group that a unit belongs to; that of a block itself. */
  static long group(long id) {
    return id < 0 ? id & -UNITS : id;
  }

  static int unit(long id) {
    return id < 0 ? (int) (id & UNITS - 1) : 0;
  }

  long group() {
    return group(id);
  }

  int unit() {
    return unit(id);
  }

  @Override
  public String toString() {
    return "blk_" + id + (node == Cluster.CLONE ? " at the clone" : " at dn" + node);
  }
}
