/*
 * A program of libhdfs, with nothing of Cairn's own in it: `libhdfs NAMENODE DIRECTORY ec|replicated`.
 * Ends with 0 when all is as libhdfs has it, and else tells the first line that is not.
 */
#include <hdfs/hdfs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                                       \
  do {                                                                                                    \
    if (!(what)) {                                                                                        \
      const char *cause = hdfsGetLastExceptionRootCause();                                                \
      fprintf(stderr, "%s:%d: %s (errno %d; %s)\n", __FILE__, __LINE__, #what, errno, cause ? cause : "-"); \
      exit(1);                                                                                            \
    }                                                                                                     \
  } while (0)
/* That a call fails, and how. */
#define FAILS(number, what) \
  do {                      \
    errno = 0;              \
    CHECK(what);            \
    CHECK(errno == number); \
  } while (0)

_Static_assert(sizeof(hdfsFileInfo) == 80 && offsetof(hdfsFileInfo, mSize) == 24 &&
                   offsetof(hdfsFileInfo, mBlockSize) == 40 && offsetof(hdfsFileInfo, mPermissions) == 64,
               "the layout is that of Hadoop");

enum { LEN = 7000001, PIECE = 300007 };
static char *data;
static hdfsFS fs;
static hdfsFile shared;

static void fill(void) {
  uint64_t state = 88172645463325252u;
  data = malloc(LEN);
  for (int i = 0; i < LEN; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    data[i] = (char)state;
  }
}

static char *at(const char *directory, const char *name) {
  static char paths[4][512];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", directory, name);
  return path;
}

static void write_file(const char *path, int flags, const char *bytes, int len) {
  hdfsFile file = hdfsOpenFile(fs, path, flags, 0, 0, 0);
  CHECK(file && hdfsFileIsOpenForWrite(file) && !hdfsFileIsOpenForRead(file));
  tOffset begin = hdfsTell(fs, file);
  for (int done = 0; done < len; done += PIECE) {
    tSize count = len - done < PIECE ? len - done : PIECE;
    CHECK(hdfsWrite(fs, file, bytes + done, count) == count);
  }
  CHECK(hdfsFlush(fs, file) == 0 && hdfsTell(fs, file) == begin + len);
  CHECK(hdfsWrite(fs, file, NULL, 0) == 0);
  FAILS(EINVAL, hdfsWrite(fs, file, NULL, 1) == -1);
  FAILS(EINVAL, hdfsRead(fs, file, data, 1) == -1);
  FAILS(EBADF, hdfsSeek(fs, file, 0) == -1);
  CHECK(hdfsUnbufferFile(file) == ENOTSUP);
  CHECK(hdfsCloseFile(fs, file) == 0);
}

static void *read_positions(void *from) {
  char *buffer = malloc(PIECE);
  for (int position = *(int *)from; position < LEN; position += 4 * PIECE) {
    int len = LEN - position < PIECE ? LEN - position : PIECE;
    CHECK(hdfsPread(fs, shared, position, buffer, PIECE) == len);
    CHECK(!memcmp(buffer, data + position, len));
  }
  free(buffer);
  return NULL;
}

static void read_file(const char *path) {
  char *buffer = malloc(LEN);
  hdfsFile file = shared = hdfsOpenFile(fs, path, O_RDONLY, 0, 0, 0);
  CHECK(file && hdfsFileIsOpenForRead(file) && !hdfsFileIsOpenForWrite(file));
  CHECK(hdfsAvailable(fs, file) == LEN);
  int done = 0;
  for (tSize count; (count = hdfsRead(fs, file, buffer + done, PIECE)) != 0; done += count) {
    CHECK(count > 0);
  }
  CHECK(done == LEN && !memcmp(buffer, data, LEN) && hdfsTell(fs, file) == LEN);
  CHECK(hdfsAvailable(fs, file) == 0 && hdfsRead(fs, file, NULL, 0) == 0);

  CHECK(hdfsSeek(fs, file, 1048570) == 0 && hdfsRead(fs, file, buffer, 20) == 20);
  CHECK(!memcmp(buffer, data + 1048570, 20) && hdfsTell(fs, file) == 1048590);
  FAILS(EINTERNAL, hdfsSeek(fs, file, LEN + 1) == -1);
  FAILS(EINTERNAL, hdfsSeek(fs, file, -1) == -1);
  CHECK(hdfsUnbufferFile(file) == 0 && hdfsTell(fs, file) == 1048590);
  CHECK(hdfsRead(fs, file, buffer, 20) == 20 && !memcmp(buffer, data + 1048590, 20));

  CHECK(hdfsPread(fs, file, LEN - 3, buffer, 10) == 3 && !memcmp(buffer, data + LEN - 3, 3));
  CHECK(hdfsPread(fs, file, LEN, buffer, 10) == 0);
  CHECK(hdfsPreadFully(fs, file, 5, buffer, 4000000) == 0 && !memcmp(buffer, data + 5, 4000000));
  FAILS(EINTERNAL, hdfsPreadFully(fs, file, LEN - 3, buffer, 10) == -1);
  FAILS(EINTERNAL, hdfsPread(fs, file, -1, buffer, 10) == -1);
  FAILS(EINVAL, hdfsPread(fs, file, 0, buffer, -1) == -1);
  FAILS(EINVAL, hdfsRead(fs, file, NULL, 1) == -1);
  FAILS(EINVAL, hdfsWrite(fs, file, buffer, 1) == -1);
  FAILS(EBADF, hdfsFlush(fs, file) == -1);
  CHECK(hdfsTell(fs, file) == 1048610);

  pthread_t threads[4];
  int starts[4];
  for (int i = 0; i < 4; i++) {
    starts[i] = i * PIECE;
    CHECK(!pthread_create(&threads[i], NULL, read_positions, &starts[i]));
  }
  for (int i = 0; i < 4; i++) {
    CHECK(!pthread_join(threads[i], NULL));
  }

  struct hadoopRzOptions *options = hadoopRzOptionsAlloc();
  CHECK(options && hadoopRzOptionsSetSkipChecksum(options, 1) == 0);
  CHECK(hadoopRzOptionsSetByteBufferPool(options, ELASTIC_BYTE_BUFFER_POOL_CLASS) == 0);
  FAILS(EINVAL, hadoopRzOptionsSetByteBufferPool(options, "no/such/Pool") == -1);
  CHECK(hdfsSeek(fs, file, 0) == 0);
  for (done = 0; done < LEN;) {
    struct hadoopRzBuffer *piece = hadoopReadZero(file, options, PIECE);
    int len = piece ? hadoopRzBufferLength(piece) : 0;
    CHECK(len > 0 && len <= PIECE && !memcmp(hadoopRzBufferGet(piece), data + done, len));
    done += len;
    hadoopRzBufferFree(file, piece);
  }
  struct hadoopRzBuffer *end = hadoopReadZero(file, options, PIECE);
  CHECK(end && !hadoopRzBufferGet(end) && hadoopRzBufferLength(end) == 0);
  hadoopRzBufferFree(file, end);
  hadoopRzOptionsFree(options);

  struct hdfsReadStatistics *statistics = NULL;
  CHECK(hdfsFileGetReadStatistics(file, &statistics) == 0 && statistics->totalBytesRead > 2u * LEN);
  CHECK(hdfsReadStatisticsGetRemoteBytesRead(statistics) > 0);
  hdfsFileFreeReadStatistics(statistics);
  CHECK(hdfsFileClearReadStatistics(file) == 0);
  CHECK(hdfsFileGetReadStatistics(file, &statistics) == 0 && statistics->totalBytesRead == 0);
  hdfsFileFreeReadStatistics(statistics);
  CHECK(hdfsCloseFile(fs, file) == 0);
  free(buffer);
}

static void names(const char *directory) {
  char *sub = strdup(at(directory, "sub/deep"));
  CHECK(hdfsCreateDirectory(fs, sub) == 0 && hdfsExists(fs, sub) == 0);
  FAILS(ENOENT, hdfsExists(fs, at(directory, "none")) == -1);
  FAILS(ENOENT, hdfsGetPathInfo(fs, at(directory, "none")) == NULL);
  FAILS(ENOENT, hdfsListDirectory(fs, at(directory, "none"), &(int){0}) == NULL);
  FAILS(ENOENT, hdfsOpenFile(fs, at(directory, "none"), O_RDONLY, 0, 0, 0) == NULL);
  FAILS(ENOENT, hdfsOpenFile(fs, at(directory, "none"), O_WRONLY | O_APPEND, 0, 0, 0) == NULL);
  CHECK(strstr(hdfsGetLastExceptionRootCause(), "FileNotFoundException: "));
  CHECK(strstr(hdfsGetLastExceptionStackTrace(), "java.io.FileNotFoundException: "));
  FAILS(ENOTSUP, hdfsOpenFile(fs, at(directory, "none"), O_RDWR, 0, 0, 0) == NULL);
  FAILS(EINVAL, hdfsOpenFile(fs, "", O_RDONLY, 0, 0, 0) == NULL);
  FAILS(EINVAL, hdfsExists(fs, "hdfs://elsewhere:1/x") == -1);

  int count = 7;
  errno = 7;
  CHECK(hdfsListDirectory(fs, sub, &count) == NULL && count == 0 && errno == 0);
  write_file(at(sub, "small"), O_WRONLY, data, 10);
  hdfsFileInfo *infos = hdfsListDirectory(fs, at(directory, "sub"), &count);
  CHECK(infos && count == 1 && infos[0].mKind == kObjectKindDirectory);
  CHECK(!strncmp(infos[0].mName, "hdfs://", 7) && strstr(infos[0].mName, sub));
  hdfsFreeFileInfo(infos, count);

  char *small = strdup(at(sub, "small"));
  hdfsFileInfo *info = hdfsGetPathInfo(fs, small);
  CHECK(info && info->mKind == kObjectKindFile && info->mSize == 10 && info->mLastMod > 1600000000);
  CHECK(info->mReplication > 0 && info->mBlockSize > 0 && (info->mPermissions & 0777) == 0644);
  CHECK(info->mOwner[0] && info->mGroup[0] && hdfsFileIsEncrypted(info) == 0);
  hdfsFreeFileInfo(info, 1);
  CHECK(hdfsChmod(fs, small, 0600) == 0 && hdfsUtime(fs, small, 1000, -1) == 0);
  CHECK(hdfsChown(fs, small, "ann", "staff") == 0 && hdfsChown(fs, small, NULL, "team") == 0);
  CHECK(hdfsChown(fs, small, NULL, NULL) == 0);
  info = hdfsGetPathInfo(fs, small);
  CHECK((info->mPermissions & 0777) == 0600 && info->mLastMod == 1000 && info->mLastAccess > 1600000000);
  CHECK(!strcmp(info->mOwner, "ann") && !strcmp(info->mGroup, "team"));
  hdfsFreeFileInfo(info, 1);

  CHECK(hdfsRename(fs, small, at(directory, "moved")) == 0 && hdfsExists(fs, small) == -1);
  FAILS(EIO, hdfsRename(fs, small, at(directory, "other")) == -1);
  CHECK(hdfsCopy(fs, at(directory, "moved"), fs, small) == 0 && hdfsExists(fs, small) == 0);
  CHECK(hdfsMove(fs, at(directory, "moved"), fs, sub) == 0);
  CHECK(hdfsExists(fs, at(directory, "moved")) == -1 && hdfsExists(fs, at(sub, "moved")) == 0);
  CHECK(hdfsCopy(fs, at(directory, "sub"), fs, at(directory, "tree")) == 0);
  CHECK(hdfsExists(fs, at(directory, "tree/deep/moved")) == 0);
  FAILS(EINTERNAL, hdfsCopy(fs, sub, fs, at(sub, "in")) == -1);
  FAILS(EINTERNAL, hdfsMove(fs, small, fs, small) == -1);
  CHECK(hdfsExists(fs, small) == 0);

  FAILS(EINTERNAL, hdfsDelete(fs, sub, 0) == -1);
  CHECK(hdfsDelete(fs, sub, 1) == 0);
  FAILS(EIO, hdfsDelete(fs, sub, 1) == -1);

  char buffer[512], expected[512];
  CHECK(hdfsSetWorkingDirectory(fs, directory) == 0);
  CHECK(hdfsGetWorkingDirectory(fs, buffer, sizeof buffer) == buffer && strstr(buffer, directory));
  snprintf(expected, sizeof expected, "%s", buffer);
  CHECK(!strncmp(buffer, "hdfs://", 7) && hdfsExists(fs, "tree/deep/../deep/./moved") == 0);
  CHECK(hdfsExists(fs, expected) == 0);
  FAILS(ENAMETOOLONG, hdfsGetWorkingDirectory(fs, buffer, strlen(expected)) == NULL);
  CHECK(hdfsDelete(fs, "tree", 1) == 0);
  free(small);
  free(sub);
}

static void blocks(const char *path, int ec) {
  char ***hosts = hdfsGetHosts(fs, path, 0, LEN);
  CHECK(hosts && hosts[0] && hosts[0][0] && hosts[0][0][0]);
  int count = 0;
  while (hosts[0][count]) {
    count++;
  }
  CHECK(ec ? count == 5 : count == 3);
  hdfsFreeHosts(hosts);
  hosts = hdfsGetHosts(fs, path, LEN, 1);
  CHECK(hosts && !hosts[0]);
  hdfsFreeHosts(hosts);
  CHECK(hdfsGetCapacity(fs) > 0 && hdfsGetUsed(fs) >= 0);
  CHECK(hdfsGetDefaultBlockSize(fs) == 2097152 && hdfsGetDefaultBlockSizeAtPath(fs, path) == 2097152);
  struct hdfsHedgedReadMetrics *metrics = NULL;
  if (hdfsGetHedgedReadMetrics(fs, &metrics) == 0) {
    hdfsFreeHedgedReadMetrics(metrics);
  } else {
    CHECK(errno == ENOTSUP);
  }
}

static void builders(const char *directory) {
  char *path = strdup(at(directory, "built"));
  struct hdfsStreamBuilder *builder = hdfsStreamBuilderAlloc(fs, path, O_WRONLY);
  CHECK(builder && hdfsStreamBuilderSetBufferSize(builder, 4096) == 0);
  CHECK(hdfsStreamBuilderSetReplication(builder, 2) == 0);
  CHECK(hdfsStreamBuilderSetDefaultBlockSize(builder, 1048576) == 0);
  hdfsFile file = hdfsStreamBuilderBuild(builder);
  CHECK(file && hdfsWrite(fs, file, data, 5) == 5 && hdfsCloseFile(fs, file) == 0);
  hdfsFileInfo *info = hdfsGetPathInfo(fs, path);
  CHECK(info && info->mBlockSize == 1048576 && info->mSize == 5);
  hdfsFreeFileInfo(info, 1);
  builder = hdfsStreamBuilderAlloc(fs, path, O_RDONLY);
  FAILS(EINVAL, hdfsStreamBuilderSetReplication(builder, 2) == -1);
  FAILS(EINVAL, hdfsStreamBuilderSetDefaultBlockSize(builder, 1048576) == -1);
  file = hdfsStreamBuilderBuild(builder);
  CHECK(file && hdfsAvailable(fs, file) == 5 && hdfsCloseFile(fs, file) == 0);
  hdfsStreamBuilderFree(hdfsStreamBuilderAlloc(fs, path, O_RDONLY));
  FAILS(EINVAL, hdfsStreamBuilderAlloc(fs, NULL, O_RDONLY) == NULL);
  FAILS(ENOENT, hdfsStreamBuilderBuild(hdfsStreamBuilderAlloc(fs, "/none", O_RDONLY)) == NULL);
#ifndef WITHOUT_OPEN_FILE_BUILDER
  char buffer[5];
  hdfsOpenFileBuilder *open = hdfsOpenFileBuilderAlloc(fs, path);
  CHECK(open && hdfsOpenFileBuilderOpt(open, "any", "thing") == open);
  CHECK(hdfsOpenFileBuilderMust(open, "fs.option.openfile.length", "5") == open);
  hdfsOpenFileFuture *future = hdfsOpenFileBuilderBuild(open);
  CHECK(future && (file = hdfsOpenFileFutureGetWithTimeout(future, 1, jMinutes)));
  CHECK(hdfsRead(fs, file, buffer, 5) == 5 && !memcmp(buffer, data, 5) && hdfsCloseFile(fs, file) == 0);
  CHECK((file = hdfsOpenFileFutureGet(future)) && hdfsCloseFile(fs, file) == 0);
  CHECK(hdfsOpenFileFutureCancel(future, 0) != 0);
  hdfsOpenFileFutureFree(future);
  future = hdfsOpenFileBuilderBuild(hdfsOpenFileBuilderAlloc(fs, "/none"));
  FAILS(ENOENT, hdfsOpenFileFutureGet(future) == NULL);
  hdfsOpenFileFutureFree(future);
  open = hdfsOpenFileBuilderMust(hdfsOpenFileBuilderAlloc(fs, path), "any", "thing");
  FAILS(EINVAL, hdfsOpenFileBuilderBuild(open) == NULL);
  hdfsOpenFileBuilderFree(hdfsOpenFileBuilderAlloc(fs, path));
#endif
  CHECK(hdfsDelete(fs, path, 0) == 0);
  free(path);
}

/* What only replicated files can, and what erasure coded files say instead. */
static void growth(const char *path, int ec) {
  if (ec) {
    FAILS(ENOTSUP, hdfsOpenFile(fs, path, O_WRONLY | O_APPEND, 0, 0, 0) == NULL);
    return;
  }
  write_file(path, O_WRONLY | O_APPEND, data, 1000);
  hdfsFile file = hdfsOpenFile(fs, path, O_WRONLY | O_APPEND, 0, 0, 0);
  CHECK(file && hdfsTell(fs, file) == LEN + 1000 && hdfsWrite(fs, file, data, 24) == 24);
  CHECK(hdfsHFlush(fs, file) == 0);
  hdfsFile reader = hdfsOpenFile(fs, path, O_RDONLY, 0, 0, 0);
  CHECK(reader && hdfsAvailable(fs, reader) == LEN + 1024 && hdfsCloseFile(fs, reader) == 0);
  CHECK(hdfsHSync(fs, file) == 0 && hdfsCloseFile(fs, file) == 0);
  CHECK(hdfsSetReplication(fs, path, 2) == 0);
  FAILS(ENOENT, hdfsSetReplication(fs, "/", 2) == -1);
  CHECK(hdfsTruncateFile(fs, path, 2097152) == 1);
  FAILS(EINVAL, hdfsTruncateFile(fs, path, -1) == -1);
  hdfsFileInfo *info = hdfsGetPathInfo(fs, path);
  CHECK(info && info->mSize == 2097152 && info->mReplication == 2);
  hdfsFreeFileInfo(info, 1);
}

static void nulls(void) {
  FAILS(EBADF, hdfsDisconnect(NULL) == -1);
  FAILS(EBADF, hdfsCloseFile(fs, NULL) == -1);
  FAILS(EBADF, hdfsRead(fs, NULL, data, 1) == -1);
  FAILS(EBADF, hdfsPread(fs, NULL, 0, data, 1) == -1);
  FAILS(EBADF, hdfsWrite(fs, NULL, data, 1) == -1);
  FAILS(EBADF, hdfsTell(fs, NULL) == -1);
#ifndef WITHOUT_NULLS
  FAILS(EINVAL, hdfsExists(fs, NULL) == -1);
  FAILS(EINVAL, hdfsExists(NULL, "/") == -1);
  FAILS(EINVAL, hdfsGetPathInfo(NULL, "/") == NULL);
  FAILS(EINVAL, hdfsListDirectory(fs, "/", NULL) == NULL);
  FAILS(EINVAL, hdfsGetWorkingDirectory(fs, NULL, 10) == NULL);
  FAILS(EINVAL, hdfsOpenFile(NULL, "/x", O_RDONLY, 0, 0, 0) == NULL);
  FAILS(EINVAL, hdfsBuilderConnect(NULL) == NULL);
  FAILS(EINVAL, hdfsConfGetStr(NULL, NULL) == EINVAL);
  FAILS(EINVAL, hdfsRename(fs, "/x", NULL) == -1);
  hdfsFreeFileInfo(NULL, 0);
  hdfsFreeHosts(NULL);
  hdfsFreeBuilder(NULL);
#endif
}

static void connecting(const char *namenode) {
  char host[256];
  snprintf(host, sizeof host, "%s", namenode + strlen("hdfs://"));
  char *colon = strrchr(host, ':');
  CHECK(colon);
  tPort port = (tPort)atoi(colon + 1);
  FAILS(EINVAL, hdfsConnect(namenode, port) == NULL);
  *colon = 0;
  hdfsFS other = hdfsConnectAsUserNewInstance(host, port, "ann");
  char buffer[512];
  CHECK(other && hdfsExists(other, "/") == 0);
  CHECK(hdfsGetWorkingDirectory(other, buffer, sizeof buffer) && strstr(buffer, "/user/ann"));
  FAILS(EACCES, hdfsCreateDirectory(other, "/not-anns") == -1);
  CHECK(hdfsDisconnect(other) == 0);
  CHECK((other = hdfsConnect("default", 0)) && hdfsExists(other, "/") == 0 && hdfsDisconnect(other) == 0);
  char *value = NULL;
  int32_t number = 7;
  CHECK(hdfsConfGetStr("fs.defaultFS", &value) == 0 && !strcmp(value, namenode));
  hdfsConfStrFree(value);
  CHECK(hdfsConfGetStr("no.such.key", &value) == 0 && value == NULL);
  CHECK(hdfsConfGetInt("no.such.key", &number) == 0 && number == 7);
  CHECK(hdfsConfGetInt("dfs.replication", &number) == 0 && number == 3);
}

int main(int argc, char **argv) {
  CHECK(argc == 4);
  int ec = !strcmp(argv[3], "ec");
  fill();
  struct hdfsBuilder *builder = hdfsNewBuilder();
  CHECK(builder);
  hdfsBuilderSetNameNode(builder, argv[1]);
  hdfsBuilderSetUserName(builder, "root");
  hdfsBuilderSetForceNewInstance(builder);
  CHECK(hdfsBuilderConfSetStr(builder, "dfs.blocksize", "2m") == 0);
  CHECK((fs = hdfsBuilderConnect(builder)) != NULL);
  char *big = strdup(at(argv[2], "big"));
  write_file(big, O_WRONLY, data, LEN);
  read_file(big);
  blocks(big, ec);
  growth(big, ec);
  write_file(big, O_WRONLY, data, 100);
  builders(argv[2]);
  names(argv[2]);
  nulls();
  connecting(argv[1]);
  CHECK(hdfsDelete(fs, big, 0) == 0);
  free(big);
  free(data);
  CHECK(hdfsDisconnect(fs) == 0);
  return 0;
}
