package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// refusedHere returns refused system calls that only this architecture has.
func refusedHere() map[uint32]string {
	return map[uint32]string{
		unix.SYS_IOPERM:          "ioperm",
		unix.SYS_IOPL:            "iopl",
		unix.SYS_MODIFY_LDT:      "modify_ldt",
		unix.SYS_USELIB:          "uselib",
		unix.SYS_USTAT:           "ustat",
		unix.SYS_SYSFS:           "sysfs",
		unix.SYS_CREATE_MODULE:   "create_module",
		unix.SYS_GET_KERNEL_SYMS: "get_kernel_syms",
		unix.SYS_QUERY_MODULE:    "query_module",
		unix.SYS_NFSSERVCTL:      "nfsservctl",
		unix.SYS__SYSCTL:         "sysctl",
	}
}

// movingHere returns moving calls that only this architecture has.
func movingHere() []uint32 { return []uint32{unix.SYS_RENAME, unix.SYS_LINK} }
