//go:build portable || !linux

package disk

import "os"

// self returns what every system reports. The root user has all permissions.
func self() Self {
	user, group := os.Geteuid(), os.Getegid()
	if user < 0 || group < 0 {
		return Self{}
	}
	s := Self{Owner: Owner{Known: true, User: uint32(user), Group: uint32(group)}, Gives: user == 0}
	groups, _ := os.Getgroups()
	for _, g := range groups {
		s.Groups = append(s.Groups, uint32(g))
	}
	return s
}
