package shim

// System call numbers that only this architecture has.
const (
	sysFstatat        = 79  // SYS_NEWFSTATAT
	sysProcessVMReadv = 270 // SYS_PROCESS_VM_READV
	sysRenameat2      = 276 // SYS_RENAMEAT2
	sysSeccomp        = 277 // SYS_SECCOMP
	sysStatx          = 291 // SYS_STATX
)

// oldCall reports whether a system call is rename or link, which this
// architecture does not have.
func oldCall(int32) (rename, link bool) { return false, false }
