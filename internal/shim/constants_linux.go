//go:build amd64 || arm64

package shim

// Constants of the kernel that package syscall lacks. The comment of each is
// the kernel's name, with which a test compares it with golang.org/x/sys/unix
// on each architecture. Package shim cannot import that, see its documentation.

// System call numbers that all architectures share: those since 2019.
const (
	sysPidfdSendSignal       = 424 // SYS_PIDFD_SEND_SIGNAL
	sysPidfdOpen             = 434 // SYS_PIDFD_OPEN
	sysCloseRange            = 436 // SYS_CLOSE_RANGE
	sysOpenat2               = 437 // SYS_OPENAT2
	sysMoveMount             = 429 // SYS_MOVE_MOUNT
	sysMountSetattr          = 442 // SYS_MOUNT_SETATTR
	sysLandlockCreateRuleset = 444 // SYS_LANDLOCK_CREATE_RULESET
	sysLandlockAddRule       = 445 // SYS_LANDLOCK_ADD_RULE
	sysLandlockRestrictSelf  = 446 // SYS_LANDLOCK_RESTRICT_SELF
)

// Files and paths.
const (
	atFDCWD             = -0x64    // AT_FDCWD
	atSymlinkNofollow   = 0x100    // AT_SYMLINK_NOFOLLOW
	atRecursive         = 0x8000   // AT_RECURSIVE
	oPath               = 0x200000 // O_PATH
	xOK                 = 0x1      // X_OK
	atRemovedir         = 0x200    // AT_REMOVEDIR
	atSymlinkFollow     = 0x400    // AT_SYMLINK_FOLLOW
	atEmptyPath         = 0x1000   // AT_EMPTY_PATH
	moveMountFEmptyPath = 0x4      // MOVE_MOUNT_F_EMPTY_PATH
	renameNoreplace     = 0x1      // RENAME_NOREPLACE
	renameExchange      = 0x2      // RENAME_EXCHANGE
	statxMntID          = 0x1000   // STATX_MNT_ID
	resolveNoMagiclinks = 0x2      // RESOLVE_NO_MAGICLINKS
	resolveBeneath      = 0x8      // RESOLVE_BENEATH
	resolveNoSymlinks   = 0x4      // RESOLVE_NO_SYMLINKS
	resolveInRoot       = 0x10     // RESOLVE_IN_ROOT
	closeRangeCloexec   = 0x4      // CLOSE_RANGE_CLOEXEC
	pollIn              = 0x1      // POLLIN
	pollHup             = 0x10     // POLLHUP
	pollRDHup           = 0x2000   // POLLRDHUP
)

// Attributes of mounts.
const (
	mountAttrRdonly = 0x1 // MOUNT_ATTR_RDONLY
	mountAttrNosuid = 0x2 // MOUNT_ATTR_NOSUID
	mountAttrNodev  = 0x4 // MOUNT_ATTR_NODEV
	mountAttrNoexec = 0x8 // MOUNT_ATTR_NOEXEC
)

// Processes, their rights and limits.
const (
	prSetChildSubreaper               = 0x24       // PR_SET_CHILD_SUBREAPER
	prSetNoNewPrivs                   = 0x26       // PR_SET_NO_NEW_PRIVS
	prCapAmbient                      = 0x2f       // PR_CAP_AMBIENT
	prCapAmbientClearAll              = 0x4        // PR_CAP_AMBIENT_CLEAR_ALL
	capSetPCap                        = 0x8        // CAP_SETPCAP
	linuxCapabilityVersion3           = 0x20080522 // LINUX_CAPABILITY_VERSION_3
	seccompSetModeFilter              = 0x1        // SECCOMP_SET_MODE_FILTER
	seccompFilterFlagNewListener      = 0x8        // SECCOMP_FILTER_FLAG_NEW_LISTENER
	seccompFilterFlagWaitKillableRecv = 0x20       // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	seccompIoctlNotifRecv             = 0xc0502100 // SECCOMP_IOCTL_NOTIF_RECV
	seccompIoctlNotifSend             = 0xc0182101 // SECCOMP_IOCTL_NOTIF_SEND
	seccompIoctlNotifIDValid          = 0x40082102 // SECCOMP_IOCTL_NOTIF_ID_VALID
	seccompUserNotifFlagContinue      = 0x1        // SECCOMP_USER_NOTIF_FLAG_CONTINUE
	rlimitNproc                       = 0x6        // RLIMIT_NPROC
	rlimitMemlock                     = 0x8        // RLIMIT_MEMLOCK
	rlimitMsgqueue                    = 0xc        // RLIMIT_MSGQUEUE
)

// Landlock.
const (
	landlockCreateRulesetVersion    = 0x1    // LANDLOCK_CREATE_RULESET_VERSION
	landlockRulePathBeneath         = 0x1    // LANDLOCK_RULE_PATH_BENEATH
	landlockAccessFSExecute         = 0x1    // LANDLOCK_ACCESS_FS_EXECUTE
	landlockAccessFSWriteFile       = 0x2    // LANDLOCK_ACCESS_FS_WRITE_FILE
	landlockAccessFSReadFile        = 0x4    // LANDLOCK_ACCESS_FS_READ_FILE
	landlockAccessFSReadDir         = 0x8    // LANDLOCK_ACCESS_FS_READ_DIR
	landlockAccessFSRemoveDir       = 0x10   // LANDLOCK_ACCESS_FS_REMOVE_DIR
	landlockAccessFSRemoveFile      = 0x20   // LANDLOCK_ACCESS_FS_REMOVE_FILE
	landlockAccessFSMakeChar        = 0x40   // LANDLOCK_ACCESS_FS_MAKE_CHAR
	landlockAccessFSMakeDir         = 0x80   // LANDLOCK_ACCESS_FS_MAKE_DIR
	landlockAccessFSMakeReg         = 0x100  // LANDLOCK_ACCESS_FS_MAKE_REG
	landlockAccessFSMakeSock        = 0x200  // LANDLOCK_ACCESS_FS_MAKE_SOCK
	landlockAccessFSMakeFifo        = 0x400  // LANDLOCK_ACCESS_FS_MAKE_FIFO
	landlockAccessFSMakeBlock       = 0x800  // LANDLOCK_ACCESS_FS_MAKE_BLOCK
	landlockAccessFSMakeSym         = 0x1000 // LANDLOCK_ACCESS_FS_MAKE_SYM
	landlockAccessFSRefer           = 0x2000 // LANDLOCK_ACCESS_FS_REFER
	landlockAccessFSTruncate        = 0x4000 // LANDLOCK_ACCESS_FS_TRUNCATE
	landlockAccessFSIOCTLDev        = 0x8000 // LANDLOCK_ACCESS_FS_IOCTL_DEV
	landlockAccessNetBindTCP        = 0x1    // LANDLOCK_ACCESS_NET_BIND_TCP
	landlockAccessNetConnectTCP     = 0x2    // LANDLOCK_ACCESS_NET_CONNECT_TCP
	landlockScopeAbstractUnixSocket = 0x1    // LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	landlockScopeSignal             = 0x2    // LANDLOCK_SCOPE_SIGNAL
)
