package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// refusedHere are system calls that only this machine's architecture has.
func refusedHere() map[uint32]string { return map[uint32]string{unix.SYS_NFSSERVCTL: "nfsservctl"} }

// movingHere are those that only this architecture has.
func movingHere() []uint32 { return nil }
