package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// refusedHere returns refused system calls that only this architecture has.
func refusedHere() map[uint32]string { return map[uint32]string{unix.SYS_NFSSERVCTL: "nfsservctl"} }

// movingHere returns moving calls that only this architecture has.
func movingHere() []uint32 { return nil }
