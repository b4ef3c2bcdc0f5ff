package shim

// Numbers of system calls that this architecture has for itself.
const (
	sysFstatat = 262 // SYS_NEWFSTATAT
	sysSeccomp = 317 // SYS_SECCOMP
)
