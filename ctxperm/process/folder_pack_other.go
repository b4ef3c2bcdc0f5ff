//go:build portable || !linux

package process

// packName finds nothing to pack: here each name has a file in the tree of the
// copy.
func (*snapshotStore) packName(string, fileStamp, []byte) (p packName, ok bool) { return p, false }
