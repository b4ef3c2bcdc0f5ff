package disk

// Identity tells one directory from another that took its name. It is
// comparable and survives JSON; it does not survive a copy of the folder.
type Identity struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	Born   int64  `json:"born,omitempty"` // when the inode was made, in nanoseconds since 1970; 0: the file system does not tell
}

// Is reports whether both are one directory, seen in one start of the system. An
// inode's number goes to the next file that is made once its own is gone, so the
// time of its birth must be the same where both are known.
func (id Identity) Is(other Identity) bool {
	return id.Device == other.Device && id.again(other)
}

// IsAgain reports whether both are one directory, also where the system was started
// or the file system mounted in between: its device may have another number then,
// and only the inode and its birth tell.
func (id Identity) IsAgain(other Identity) bool {
	return id.Is(other) || (id.Born != 0 && other.Born != 0 && id.again(other))
}

func (id Identity) again(other Identity) bool {
	return id.Inode == other.Inode && (id.Born == other.Born || id.Born == 0 || other.Born == 0)
}
