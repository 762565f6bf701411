package cairn.interop.contract;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.contract.AbstractContractAppendTest;
import org.apache.hadoop.fs.contract.AbstractContractBulkDeleteTest;
import org.apache.hadoop.fs.contract.AbstractContractConcatTest;
import org.apache.hadoop.fs.contract.AbstractContractContentSummaryTest;
import org.apache.hadoop.fs.contract.AbstractContractCopyFromLocalTest;
import org.apache.hadoop.fs.contract.AbstractContractCreateTest;
import org.apache.hadoop.fs.contract.AbstractContractDeleteTest;
import org.apache.hadoop.fs.contract.AbstractContractGetEnclosingRoot;
import org.apache.hadoop.fs.contract.AbstractContractGetFileStatusTest;
import org.apache.hadoop.fs.contract.AbstractContractLeaseRecoveryTest;
import org.apache.hadoop.fs.contract.AbstractContractMkdirTest;
import org.apache.hadoop.fs.contract.AbstractContractMultipartUploaderTest;
import org.apache.hadoop.fs.contract.AbstractContractOpenTest;
import org.apache.hadoop.fs.contract.AbstractContractPathHandleTest;
import org.apache.hadoop.fs.contract.AbstractContractRenameTest;
import org.apache.hadoop.fs.contract.AbstractContractRootDirectoryTest;
import org.apache.hadoop.fs.contract.AbstractContractSafeModeTest;
import org.apache.hadoop.fs.contract.AbstractContractSeekTest;
import org.apache.hadoop.fs.contract.AbstractContractSetTimesTest;
import org.apache.hadoop.fs.contract.AbstractContractStreamIOStatisticsTest;
import org.apache.hadoop.fs.contract.AbstractContractUnbufferTest;
import org.apache.hadoop.fs.contract.AbstractContractVectoredReadTest;
import org.apache.hadoop.fs.contract.AbstractFSContract;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** Hadoop's contract tests of file systems that HDFS has a class for, each bound to {@link ClusterContract}. */
final class Contracts {
  private Contracts() {}

  public static class Append extends AbstractContractAppendTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class BulkDelete extends AbstractContractBulkDeleteTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class Concat extends AbstractContractConcatTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class ContentSummary extends AbstractContractContentSummaryTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class CopyFromLocal extends AbstractContractCopyFromLocalTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class Create extends AbstractContractCreateTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class Delete extends AbstractContractDeleteTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class GetEnclosingRoot extends AbstractContractGetEnclosingRoot {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class GetFileStatus extends AbstractContractGetFileStatusTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class LeaseRecovery extends AbstractContractLeaseRecoveryTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class Mkdir extends AbstractContractMkdirTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class MultipartUploader extends AbstractContractMultipartUploaderTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }

    @Override
    protected int partSizeInBytes() {
      return 1024;
    }

    @Override
    protected boolean finalizeConsumesUploadIdImmediately() {
      return true;
    }

    @Override
    protected boolean supportsConcurrentUploadsToSamePath() {
      return true;
    }
  }

  public static class Open extends AbstractContractOpenTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class PathHandle extends AbstractContractPathHandleTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class Rename extends AbstractContractRenameTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class RootDirectory extends AbstractContractRootDirectoryTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class SafeMode extends AbstractContractSafeModeTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class Seek extends AbstractContractSeekTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class SetTimes extends AbstractContractSetTimesTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class StreamIOStatistics extends AbstractContractStreamIOStatisticsTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  public static class Unbuffer extends AbstractContractUnbufferTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new ClusterContract(conf);
    }
  }

  @ParameterizedClass(name = "{0}")
  @MethodSource("params")
  public static class VectoredRead extends AbstractContractVectoredReadTest {
    public VectoredRead(String bufferType) {
      super(bufferType);
    }

    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      // Each of the 46 cases writes 128 KiB: in blocks of 1 KiB that takes a fifth of the time of all tests.
      return new ClusterContract(conf, 16 << 10);
    }
  }
}
