/*
 * Lets Hadoop 3.5.0's classes load the native library of Hadoop 3.3, which this one stands before: there, the one
 * function to begin with has another name, and looks for a setting in a field that is an argument now.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jni.h>

typedef void (*init_native)(JNIEnv *, jclass);

static void init(JNIEnv *env) {
  init_native older =
      (init_native)dlsym(RTLD_NEXT, "Java_org_apache_hadoop_io_nativeio_NativeIO_initNative");
  jclass settings = (*env)->FindClass(env, "cairn/interop/NativeSettings");
  if (older != NULL && settings != NULL) {
    older(env, settings);
  }
}

JNIEXPORT void JNICALL Java_org_apache_hadoop_io_nativeio_NativeIO_00024POSIX_initNativePosix(
    JNIEnv *env, jclass posix, jboolean workaround) {
  (void)posix;
  (void)workaround;
  init(env);
}

JNIEXPORT void JNICALL Java_org_apache_hadoop_io_nativeio_NativeIO_initNative(
    JNIEnv *env, jclass nativeIo, jboolean workaround) {
  (void)nativeIo;
  (void)workaround;
  init(env);
}
