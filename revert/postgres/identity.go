package postgres

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/remit-dev/remit/internal/disk"
)

// identityFile is the file of a state folder that names its node.
func identityFile(dir string) string { return filepath.Join(dir, "node.json") }

// nodeIDForm matches the IDs that writeNodeID makes. Other text could act on a
// terminal, or name something else.
var nodeIDForm = regexp.MustCompile(`^n_[a-z2-7]{16}$`)

// identify returns the identity of the node of a state folder. It creates what
// is missing.
func identify(dir string) (n nodeIdentity, err error) {
	if n.dir, err = filepath.Abs(dir); err != nil {
		return n, err
	}
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return n, err
	}
	info, err := os.Stat(n.dir)
	if err != nil {
		return n, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return n, fmt.Errorf("others may enter the state folder %s (mode %v), and it holds what tools have read: chmod 700 it", n.dir, info.Mode().Perm())
	}
	if n.id, err = nodeID(n.dir); err != nil {
		return n, fmt.Errorf("identity of the node in %s: %w", n.dir, err)
	}
	n.place, err = placeOf(n.dir)
	return n, err
}

// nodeID reads the ID of the node, or makes one. Of two processes that make one
// at once, both get the one that has the name first.
func nodeID(dir string) (string, error) {
	name := identityFile(dir)
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		if err := writeNodeID(dir, name); err != nil {
			return "", err
		}
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return "", err
	}
	var is struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(text, &is); err != nil || !nodeIDForm.MatchString(is.ID) {
		return "", errors.New("node.json is damaged; restore it from a backup, or the files of this node cannot be reverted")
	}
	return is.ID, nil
}

// writeNodeID gives a complete and synced file its name, unless another process
// was faster.
func writeNodeID(dir, name string) error {
	draft, err := os.CreateTemp(dir, "node.json.*.new") // of mode 0600
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(draft, "{\"id\":%q}\n", "n_"+strings.ToLower(rand.Text()[:16]))
	if err == nil {
		err = draft.Sync()
	}
	if err = errors.Join(err, draft.Close()); err == nil {
		if err = os.Link(draft.Name(), name); errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	return errors.Join(err, os.Remove(draft.Name()), syncFolder(dir))
}

func syncFolder(dir string) error {
	if runtime.GOOS == "windows" { // Windows cannot sync a folder
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// placeOf names the run of the system and the folder. A copy of the folder has
// another name, also in a copy of the whole system.
func placeOf(dir string) (string, error) {
	root, err := disk.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	is := root.Identity()
	if err := root.Close(); err != nil {
		return "", err
	}
	system, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil { // another system than Linux
		name, err := os.Hostname()
		if err != nil {
			return "", err
		}
		system = []byte(name)
	}
	return fmt.Sprintf("%s %d:%d:%d", strings.TrimSpace(string(system)), is.Device, is.Inode, is.Created), nil
}
