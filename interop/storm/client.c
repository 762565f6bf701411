/*
 * Cairn's client as the storm drives it: a program of libhdfs that obeys lines on its standard input, one after the
 * other, and answers each with a line, `ok ...` or `err WHY`. One file at a time is open for writing.
 *
 *   create PATH COPIES    (0: as the folder says)      read PATH            answers ok COUNT and the bytes
 *   append PATH                                         truncate PATH COUNT  answers ok 1 if it is done, ok 0 if it will be
 *   write COUNT           and the bytes                 rename FROM TO
 *   sync, close                                         delete PATH
 */
#include <hdfs/hdfs.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 512, PIECE = 1 << 16 };

static hdfsFS fs;
static hdfsFile out;

static void fail(void) {
  const char *cause = hdfsGetLastExceptionRootCause();
  char line[WORD];
  snprintf(line, sizeof line, "%s (errno %d)", cause ? cause : "no cause", errno);
  for (char *at = line; *at; at++) {
    if (*at == '\n') *at = ' ';
  }
  printf("err %s\n", line);
}

static void answer(int failed) {
  if (failed) {
    fail();
  } else {
    printf("ok\n");
  }
}

static void open_out(const char *path, int flags, short copies) {
  if (out) {
    printf("err a file is open\n");
    return;
  }
  out = hdfsOpenFile(fs, path, flags, 0, copies, 0);
  answer(!out);
}

/* All bytes are taken from the input, whatever becomes of them. */
static void write_out(size_t count) {
  char *bytes = malloc(count ? count : 1);
  if (!bytes || fread(bytes, 1, count, stdin) != count) exit(2);
  if (!out) {
    printf("err no file is open\n");
  } else {
    answer(hdfsWrite(fs, out, bytes, (tSize)count) != (tSize)count);
  }
  free(bytes);
}

static void close_out(void) {
  hdfsFile file = out;
  out = NULL;
  if (!file) {
    printf("err no file is open\n");
  } else {
    answer(hdfsCloseFile(fs, file));
  }
}

static void read_all(const char *path) {
  hdfsFile file = hdfsOpenFile(fs, path, O_RDONLY, 0, 0, 0);
  size_t count = 0, room = PIECE;
  char *bytes = malloc(room);
  tSize n = -1;
  if (file && bytes) {
    while ((n = hdfsRead(fs, file, bytes + count, (tSize)(room - count))) > 0) {
      count += (size_t)n;
      if (count == room) {
        bytes = realloc(bytes, room *= 2);
        if (!bytes) exit(2);
      }
    }
  }
  if (n < 0) {
    fail();
  } else {
    printf("ok %zu\n", count);
    fwrite(bytes, 1, count, stdout);
  }
  if (file) hdfsCloseFile(fs, file);
  free(bytes);
}

int main(void) {
  char line[3 * WORD], verb[WORD], first[WORD], second[WORD];
  struct hdfsBuilder *builder = hdfsNewBuilder();
  hdfsBuilderSetNameNode(builder, "default");
  fs = hdfsBuilderConnect(builder);
  answer(!fs);
  fflush(stdout);
  while (fs && fgets(line, sizeof line, stdin)) {
    first[0] = second[0] = 0;
    if (sscanf(line, "%511s %511s %511s", verb, first, second) < 1) continue;
    long long number = strtoll(second[0] ? second : first, NULL, 10);
    if (!strcmp(verb, "create")) {
      open_out(first, O_WRONLY, (short)number);
    } else if (!strcmp(verb, "append")) {
      open_out(first, O_WRONLY | O_APPEND, 0);
    } else if (!strcmp(verb, "write")) {
      write_out((size_t)number);
    } else if (!strcmp(verb, "sync")) {
      answer(!out || hdfsHSync(fs, out));
    } else if (!strcmp(verb, "close")) {
      close_out();
    } else if (!strcmp(verb, "read")) {
      read_all(first);
    } else if (!strcmp(verb, "truncate")) {
      int done = hdfsTruncateFile(fs, first, number);
      if (done < 0) {
        fail();
      } else {
        printf("ok %d\n", done);
      }
    } else if (!strcmp(verb, "rename")) {
      answer(hdfsRename(fs, first, second));
    } else if (!strcmp(verb, "delete")) {
      answer(hdfsDelete(fs, first, 0));
    } else {
      printf("err unknown command %s\n", verb);
    }
    fflush(stdout);
  }
  return fs ? 0 : 1;
}
