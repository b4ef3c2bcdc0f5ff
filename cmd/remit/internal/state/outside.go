package state

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// CheckStateOutside rejects a state folder inside a root: calls could change
// their own journal. The folder need not exist.
func (p *Workspace) CheckStateOutside(roots []string) error {
	dir, err := filepath.Abs(p.StateDir)
	if err != nil {
		return err
	}
	for {
		// A missing folder belongs to its nearest existing parent.
		if info, err := os.Stat(dir); err == nil {
			for _, root := range roots {
				if r, err := os.Stat(root); err == nil && os.SameFile(r, info) {
					return &cli.Problem{
						Code: cli.ExitUsage, What: fmt.Sprintf("the state folder %s lies inside the root %s", p.StateDir, root),
						Why: "calls could change their own journal", Fix: "name the folder that calls may change, by --workspace or by starting there; --state is where the journal is",
					}
				}
			}
			if dir, err = filepath.EvalSymlinks(dir); err != nil {
				return err
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return nil
		}
		dir = up
	}
}

// CheckRootsOutside rejects a root inside the state folder: calls could change
// the state.
func (p *Workspace) CheckRootsOutside(roots []string) error {
	for _, root := range roots {
		above := Workspace{StateDir: root}
		if err := above.CheckStateOutside([]string{p.StateDir}); err != nil {
			return &cli.Problem{
				Code: cli.ExitUsage, What: fmt.Sprintf("the root %s lies inside the state folder %s", root, p.StateDir),
				Why: "calls could change what is kept there", Fix: "name another folder with --state",
			}
		}
	}
	return nil
}

// outside rejects a file inside a root.
func outside(folders []string, name, what, why string) error {
	dir := Workspace{StateDir: filepath.Dir(name)}
	if dir.CheckStateOutside(folders) == nil {
		return nil
	}
	return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("%s %q lies inside a root", what, name), Why: why, Fix: "name a file in another folder"}
}
