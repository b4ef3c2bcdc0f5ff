package disk

// Identity distinguishes a directory from a later one at the same path. It is
// comparable and survives JSON, but not a copy of the folder.
type Identity struct {
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	Created int64  `json:"born,omitempty"` // creation time of the inode, in nanoseconds since 1970; 0: unknown
}

// Is reports whether both are one directory, read in one run of the system. A
// new file can get the inode number of a deleted one, so the creation times
// must be equal if both are known.
func (id Identity) Is(other Identity) bool {
	return id.Device == other.Device && id.again(other)
}

// IsAgain reports whether both are one directory, also across a restart of the
// system or a new mount of the file system. The device number may then differ,
// so only the inode and its creation time count.
func (id Identity) IsAgain(other Identity) bool {
	return id.Is(other) || (id.Created != 0 && other.Created != 0 && id.again(other))
}

func (id Identity) again(other Identity) bool {
	return id.Inode == other.Inode && (id.Created == other.Created || id.Created == 0 || other.Created == 0)
}
