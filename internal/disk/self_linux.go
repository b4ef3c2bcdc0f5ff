//go:build !portable

package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// self asks the kernel which owners and attributes this process can set. An
// unknown permission counts as missing.
func self() Self {
	s := Self{Owner: Owner{Known: true, User: uint32(os.Geteuid()), Group: uint32(os.Getegid())}}
	groups, _ := os.Getgroups()
	for _, g := range groups {
		s.Groups = append(s.Groups, uint32(g))
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if unix.Capget(&head, &have[0]) != nil {
		return s
	}
	has := func(c uint) bool { return have[c/32].Effective&(1<<(c%32)) != 0 }
	s.Gives, s.Administers, s.Capabilities = has(unix.CAP_CHOWN), has(unix.CAP_SYS_ADMIN), has(unix.CAP_SETFCAP)
	return s
}
