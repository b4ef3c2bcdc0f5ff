package shim

import "syscall"

// System call numbers that only this architecture has.
const (
	sysFstatat        = 262 // SYS_NEWFSTATAT
	sysProcessVMReadv = 310 // SYS_PROCESS_VM_READV
	sysRenameat2      = 316 // SYS_RENAMEAT2
	sysSeccomp        = 317 // SYS_SECCOMP
	sysStatx          = 332 // SYS_STATX
)

// oldCall reports whether a system call is rename or link, which take no folder
// descriptors.
func oldCall(nr int32) (rename, link bool) { return nr == syscall.SYS_RENAME, nr == syscall.SYS_LINK }
