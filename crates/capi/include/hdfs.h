/*
 * The functions of libhdfs, as the Cairn client has them. Programs compiled against this header run with
 * Hadoop 3.5.0's libhdfs as well, and those compiled against Hadoop's run with this library.
 *
 * Unless something else is said, functions answer 0, and -1 with errno set when they fail; those that
 * answer a pointer answer NULL then. errno is what Hadoop makes of its exceptions: ENOENT, EACCES, ENOTDIR,
 * EEXIST, EINVAL, EROFS (safe mode), EDQUOT, ESTALE (lease lost), ENOTSUP, ENOLINK, ENOMEM, else EINTERNAL.
 * A NULL that must not be one gives EINVAL; of a file, or a file system to disconnect, EBADF.
 *
 * A file system may be used by any number of threads. Calls on one file wait for each other, but for
 * hdfsPread and hdfsPreadFully, of which several may run.
 */
#ifndef LIBHDFS_HDFS_H
#define LIBHDFS_HDFS_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifndef EINTERNAL
#define EINTERNAL 255
#endif

#define ELASTIC_BYTE_BUFFER_POOL_CLASS "org/apache/hadoop/io/ElasticByteBufferPool"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t tSize;   /* of one read or write */
typedef time_t tTime;    /* seconds since 1970 */
typedef int64_t tOffset; /* in a file */
typedef uint16_t tPort;

typedef enum tObjectKind {
  kObjectKindFile = 'F',
  kObjectKindDirectory = 'D'
} tObjectKind;

struct hdfs_internal;
typedef struct hdfs_internal *hdfsFS;
struct hdfsFile_internal;
typedef struct hdfsFile_internal *hdfsFile;
struct hdfsBuilder;
struct hdfsStreamBuilder;
struct hdfsOpenFileBuilder;
typedef struct hdfsOpenFileBuilder hdfsOpenFileBuilder;
struct hdfsOpenFileFuture;
typedef struct hdfsOpenFileFuture hdfsOpenFileFuture;
struct hadoopRzOptions;
struct hadoopRzBuffer;

/* --- Connecting. Nothing is sent before the first call on the file system. --- */

struct hdfsBuilder *hdfsNewBuilder(void);
void hdfsFreeBuilder(struct hdfsBuilder *builder);
/* Connections are never shared, so this changes nothing. */
void hdfsBuilderSetForceNewInstance(struct hdfsBuilder *builder);
/* A host, host:port, hdfs://host:port, or "default" for fs.defaultFS. NULL, Hadoop's local file system,
 * makes hdfsBuilderConnect fail with ENOTSUP. */
void hdfsBuilderSetNameNode(struct hdfsBuilder *builder, const char *namenode);
/* Fails with EINVAL later when the NameNode's name has a port as well. */
void hdfsBuilderSetNameNodePort(struct hdfsBuilder *builder, tPort port);
void hdfsBuilderSetUserName(struct hdfsBuilder *builder, const char *user);
/* There is no Kerberos: connecting fails with ENOTSUP. */
void hdfsBuilderSetKerbTicketCachePath(struct hdfsBuilder *builder, const char *path);
/* A key of core-site.xml or hdfs-site.xml; value NULL takes it away. 0, or the error's number. */
int hdfsBuilderConfSetStr(struct hdfsBuilder *builder, const char *key, const char *value);
/* Frees the builder, also when it fails. */
hdfsFS hdfsBuilderConnect(struct hdfsBuilder *builder);

hdfsFS hdfsConnect(const char *namenode, tPort port);
hdfsFS hdfsConnectNewInstance(const char *namenode, tPort port);
hdfsFS hdfsConnectAsUser(const char *namenode, tPort port, const char *user);
hdfsFS hdfsConnectAsUserNewInstance(const char *namenode, tPort port, const char *user);
int hdfsDisconnect(hdfsFS fs);

/* The value of a key in the folder of the configuration: HADOOP_CONF_DIR, else a folder of CLASSPATH, else
 * HADOOP_HOME/etc/hadoop. 0, or the error's number; a key without a value is no error. */
int hdfsConfGetStr(const char *key, char **value);
int hdfsConfGetInt(const char *key, int32_t *value);
void hdfsConfStrFree(char *value);

/* --- Opening and closing files --- */

/* O_RDONLY, O_WRONLY (a new file in the place of what is there), or O_WRONLY | O_APPEND. Sizes of 0 stand
 * for what is configured. */
hdfsFile hdfsOpenFile(hdfsFS fs, const char *path, int flags, int bufferSize, short replication,
                      tSize blockSize);

struct hdfsStreamBuilder *hdfsStreamBuilderAlloc(hdfsFS fs, const char *path, int flags);
void hdfsStreamBuilderFree(struct hdfsStreamBuilder *builder);
int hdfsStreamBuilderSetBufferSize(struct hdfsStreamBuilder *builder, int32_t size);
/* EINVAL for files to read. */
int hdfsStreamBuilderSetReplication(struct hdfsStreamBuilder *builder, int16_t replication);
/* EINVAL for files to read. */
int hdfsStreamBuilderSetDefaultBlockSize(struct hdfsStreamBuilder *builder, int64_t blockSize);
/* Frees the builder, also when it fails. */
hdfsFile hdfsStreamBuilderBuild(struct hdfsStreamBuilder *builder);

/* Opening in the background. Building frees the builder, also when it fails. */
hdfsOpenFileBuilder *hdfsOpenFileBuilderAlloc(hdfsFS fs, const char *path);
hdfsOpenFileBuilder *hdfsOpenFileBuilderMust(hdfsOpenFileBuilder *builder, const char *key,
                                             const char *value);
hdfsOpenFileBuilder *hdfsOpenFileBuilderOpt(hdfsOpenFileBuilder *builder, const char *key,
                                            const char *value);
hdfsOpenFileFuture *hdfsOpenFileBuilderBuild(hdfsOpenFileBuilder *builder);
void hdfsOpenFileBuilderFree(hdfsOpenFileBuilder *builder);
hdfsFile hdfsOpenFileFutureGet(hdfsOpenFileFuture *future);
typedef enum javaConcurrentTimeUnit {
  jNanoseconds,
  jMicroseconds,
  jMilliseconds,
  jSeconds,
  jMinutes,
  jHours,
  jDays
} javaConcurrentTimeUnit;
hdfsFile hdfsOpenFileFutureGetWithTimeout(hdfsOpenFileFuture *future, int64_t timeout,
                                          javaConcurrentTimeUnit unit);
int hdfsOpenFileFutureCancel(hdfsOpenFileFuture *future, int mayInterruptIfRunning);
void hdfsOpenFileFutureFree(hdfsOpenFileFuture *future);

int hdfsFileIsOpenForRead(hdfsFile file);
int hdfsFileIsOpenForWrite(hdfsFile file);
/* Frees the handle, also when it fails: then what was written may be lost. */
int hdfsCloseFile(hdfsFS fs, hdfsFile file);

/* --- Reading --- */

/* As many bytes as asked for; fewer at the end of the file, and 0 behind it. */
tSize hdfsRead(hdfsFS fs, hdfsFile file, void *buffer, tSize length);
/* The same from a position, without moving the file's own. */
tSize hdfsPread(hdfsFS fs, hdfsFile file, tOffset position, void *buffer, tSize length);
/* 0 when all bytes were read. */
int hdfsPreadFully(hdfsFS fs, hdfsFile file, tOffset position, void *buffer, tSize length);
int hdfsSeek(hdfsFS fs, hdfsFile file, tOffset position);
tOffset hdfsTell(hdfsFS fs, hdfsFile file);
/* Bytes up to the end of the file, at most INT_MAX. */
int hdfsAvailable(hdfsFS fs, hdfsFile file);
/* Gives up what was read ahead. 0, or the error's number. */
int hdfsUnbufferFile(hdfsFile file);

/* The client's own buffers instead of copies. Options and pools are taken and change nothing. */
struct hadoopRzOptions *hadoopRzOptionsAlloc(void);
int hadoopRzOptionsSetSkipChecksum(struct hadoopRzOptions *options, int skip);
int hadoopRzOptionsSetByteBufferPool(struct hadoopRzOptions *options, const char *className);
void hadoopRzOptionsFree(struct hadoopRzOptions *options);
struct hadoopRzBuffer *hadoopReadZero(hdfsFile file, struct hadoopRzOptions *options, int32_t maxLength);
int32_t hadoopRzBufferLength(const struct hadoopRzBuffer *buffer);
/* NULL at the end of the file. */
const void *hadoopRzBufferGet(const struct hadoopRzBuffer *buffer);
void hadoopRzBufferFree(hdfsFile file, struct hadoopRzBuffer *buffer);

struct hdfsReadStatistics {
  uint64_t totalBytesRead;
  uint64_t totalLocalBytesRead;
  uint64_t totalShortCircuitBytesRead;
  uint64_t totalZeroCopyBytesRead;
};
int hdfsFileGetReadStatistics(hdfsFile file, struct hdfsReadStatistics **statistics);
int64_t hdfsReadStatisticsGetRemoteBytesRead(const struct hdfsReadStatistics *statistics);
int hdfsFileClearReadStatistics(hdfsFile file);
void hdfsFileFreeReadStatistics(struct hdfsReadStatistics *statistics);

struct hdfsHedgedReadMetrics {
  uint64_t hedgedReadOps;
  uint64_t hedgedReadOpsWin;
  uint64_t hedgedReadOpsInCurThread;
};
int hdfsGetHedgedReadMetrics(hdfsFS fs, struct hdfsHedgedReadMetrics **metrics);
void hdfsFreeHedgedReadMetrics(struct hdfsHedgedReadMetrics *metrics);

/* --- Writing --- */

tSize hdfsWrite(hdfsFS fs, hdfsFile file, const void *buffer, tSize length);
/* Sends nothing. */
int hdfsFlush(hdfsFS fs, hdfsFile file);
/* New readers see what was written. ENOTSUP for erasure coded files, where Hadoop does nothing and says 0. */
int hdfsHFlush(hdfsFS fs, hdfsFile file);
/* The same, and it is on stable storage. */
int hdfsHSync(hdfsFS fs, hdfsFile file);
/* 1 when the file is cut, 0 when its last block is still being cut. */
int hdfsTruncateFile(hdfsFS fs, const char *path, tOffset length);

/* --- Names. Paths are absolute, relative to the working directory, or hdfs:// URIs of the file system. --- */

int hdfsExists(hdfsFS fs, const char *path);
int hdfsCreateDirectory(hdfsFS fs, const char *path);
int hdfsDelete(hdfsFS fs, const char *path, int recursive);
int hdfsRename(hdfsFS fs, const char *from, const char *to);
int hdfsCopy(hdfsFS fromFS, const char *from, hdfsFS toFS, const char *to);
int hdfsMove(hdfsFS fromFS, const char *from, hdfsFS toFS, const char *to);
char *hdfsGetWorkingDirectory(hdfsFS fs, char *buffer, size_t size);
int hdfsSetWorkingDirectory(hdfsFS fs, const char *path);

/* --- What files are --- */

typedef struct {
  tObjectKind mKind;
  char *mName; /* the URI */
  tTime mLastMod;
  tOffset mSize;
  short mReplication;
  tOffset mBlockSize;
  char *mOwner;
  char *mGroup;
  short mPermissions;
  tTime mLastAccess;
} hdfsFileInfo;

hdfsFileInfo *hdfsGetPathInfo(hdfsFS fs, const char *path);
/* NULL for an empty directory too, with an errno of 0. */
hdfsFileInfo *hdfsListDirectory(hdfsFS fs, const char *path, int *count);
void hdfsFreeFileInfo(hdfsFileInfo *infos, int count);
int hdfsFileIsEncrypted(hdfsFileInfo *info);
/* For each block of a range of bytes the hosts that have it; NULL ends each list, and the list of lists. */
char ***hdfsGetHosts(hdfsFS fs, const char *path, tOffset start, tOffset length);
void hdfsFreeHosts(char ***hosts);

int hdfsSetReplication(hdfsFS fs, const char *path, int16_t replication);
int hdfsChown(hdfsFS fs, const char *path, const char *owner, const char *group);
int hdfsChmod(hdfsFS fs, const char *path, short mode);
/* -1 leaves a time as it is. */
int hdfsUtime(hdfsFS fs, const char *path, tTime modified, tTime accessed);

tOffset hdfsGetDefaultBlockSize(hdfsFS fs);
tOffset hdfsGetDefaultBlockSizeAtPath(hdfsFS fs, const char *path);
tOffset hdfsGetCapacity(hdfsFS fs);
tOffset hdfsGetUsed(hdfsFS fs);

/* --- Why the last call of this thread that failed did so. Nothing is printed. Not to be freed. --- */

char *hdfsGetLastExceptionRootCause(void);
char *hdfsGetLastExceptionStackTrace(void);

#ifdef __cplusplus
}
#endif

#endif /* LIBHDFS_HDFS_H */
