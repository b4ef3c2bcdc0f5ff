//go:build linux && !portable

package disk

// OpenRootWithoutOpenat2 opens a root as on a kernel that lacks the call.
func OpenRootWithoutOpenat2(dir string) (Root, error) {
	w, err := newOutsideWalker(dir)
	if err != nil {
		return nil, err
	}
	return newLinuxRoot(w)
}
