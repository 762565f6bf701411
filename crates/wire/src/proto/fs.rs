// Written by `cargo xtask proto` from the lists in crates/wire/proto: do not edit.

/// `hadoop.fs.FileStatusProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FileStatusProto {
    /// Field 1 `fileType`.
    #[prost(enumeration = "FileStatusProtoFileType", required, tag = "1")]
    pub file_type: i32,
    /// Field 2 `path`.
    #[prost(string, required, tag = "2")]
    pub path: ::std::string::String,
    /// Field 3 `length`.
    #[prost(uint64, optional, tag = "3")]
    pub length: ::core::option::Option<u64>,
    /// Field 4 `permission`.
    #[prost(message, optional, tag = "4")]
    pub permission: ::core::option::Option<FsPermissionProto>,
    /// Field 5 `owner`.
    #[prost(string, optional, tag = "5")]
    pub owner: ::core::option::Option<::std::string::String>,
    /// Field 6 `group`.
    #[prost(string, optional, tag = "6")]
    pub group: ::core::option::Option<::std::string::String>,
    /// Field 7 `modification_time`.
    #[prost(uint64, optional, tag = "7")]
    pub modification_time: ::core::option::Option<u64>,
    /// Field 8 `access_time`.
    #[prost(uint64, optional, tag = "8")]
    pub access_time: ::core::option::Option<u64>,
    /// Field 9 `symlink`.
    #[prost(string, optional, tag = "9")]
    pub symlink: ::core::option::Option<::std::string::String>,
    /// Field 10 `block_replication`.
    #[prost(uint32, optional, tag = "10")]
    pub block_replication: ::core::option::Option<u32>,
    /// Field 11 `block_size`.
    #[prost(uint64, optional, tag = "11")]
    pub block_size: ::core::option::Option<u64>,
    /// Field 15 `encryption_data`.
    #[prost(bytes = "vec", optional, tag = "15")]
    pub encryption_data: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 17 `ec_data`.
    #[prost(bytes = "vec", optional, tag = "17")]
    pub ec_data: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 18 `flags`.
    #[prost(uint32, optional, tag = "18", default = "0")]
    pub flags: ::core::option::Option<u32>,
}

/// `hadoop.fs.FsPermissionProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FsPermissionProto {
    /// Field 1 `perm`.
    #[prost(uint32, required, tag = "1")]
    pub perm: u32,
}

/// `hadoop.fs.LocalFileSystemPathHandleProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct LocalFileSystemPathHandleProto {
    /// Field 1 `mtime`.
    #[prost(uint64, optional, tag = "1")]
    pub mtime: ::core::option::Option<u64>,
    /// Field 2 `path`.
    #[prost(string, optional, tag = "2")]
    pub path: ::core::option::Option<::std::string::String>,
}

/// `hadoop.fs.FileStatusProto.FileType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum FileStatusProtoFileType {
    /// `FT_DIR`.
    FtDir = 1,
    /// `FT_FILE`.
    FtFile = 2,
    /// `FT_SYMLINK`.
    FtSymlink = 3,
}

/// `hadoop.fs.FileStatusProto.Flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum FileStatusProtoFlags {
    /// `HAS_ACL`.
    HasAcl = 1,
    /// `HAS_CRYPT`.
    HasCrypt = 2,
    /// `HAS_EC`.
    HasEc = 4,
    /// `SNAPSHOT_ENABLED`.
    SnapshotEnabled = 8,
}
