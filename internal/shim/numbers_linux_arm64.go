package shim

// Numbers of system calls that this architecture has for itself.
const (
	sysFstatat = 79  // SYS_NEWFSTATAT
	sysSeccomp = 277 // SYS_SECCOMP
)
