//go:build linux

package randprog

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// tools returns the operations of ordinary Unix programs.
func tools() []operation {
	one := func(name string, weight int, script string) operation {
		return operation{name: name, weight: weight, run: func(a *actor) (string, error) { return a.script(a.files, script) }}
	}
	folder := func(name string, weight int, script string) operation {
		return operation{name: name, weight: weight, run: func(a *actor) (string, error) {
			if len(a.dirs) < 2 {
				return "", errNothing
			}
			return a.script(a.dirs[1:], script)
		}}
	}
	return []operation{
		one("sed -i", 3, `sed -i 's/0/zero/g' ./"$1"`),
		one("cp", 3, `cp ./"$1" ./"$2"`),
		one("cp -a", 2, `cp -a ./"$1" ./"$2"`),
		one("cp --remove-destination", 1, `cp --remove-destination ./"$1" ./"$2"`),
		one("mv", 3, `mv ./"$1" ./"$2"`),
		one("ln -f", 2, `ln -f ./"$1" ./"$2"`),
		one("dd", 2, `dd if=/dev/zero of=./"$1" bs=1000 count=2 seek=3 conv=notrunc 2>/dev/null`),
		one("install", 1, `install -m 750 ./"$1" ./"$2"`),
		one("sort", 1, `sort -o ./"$1" ./"$1"`),
		one("gzip", 1, `gzip -nf ./"$1"`),
		one("redirect", 3, `echo "$2" > ./"$1"`),
		folder("cp -r", 1, `cp -r ./"$1" ./"$2"`),
		folder("cp -a of a folder", 1, `cp -a ./"$1" ./"$2"`),
		folder("mv of a folder", 3, `mv ./"$1" ./"$2"`),
		folder("tar", 1, `tar cf .tar ./"$1" && rm -rf ./"$1" && tar xpf .tar; rm -f .tar`),
		folder("chmod -R", 2, `chmod -R g-w,u+rwX ./"$1"`),
		folder("touch -d", 2, `find ./"$1" -exec touch -h -d "2019-03-04 05:06:07.89" {} +`),
	}
}

// script runs a shell script with an existing name and one that may exist.
func (a *actor) script(from []string, text string) (string, error) {
	name, err := a.any(from)
	other := a.fresh()
	if err != nil {
		return "", err
	}
	if within(other, name) {
		return "", errNothing // if cp copies a folder into itself, the result depends on the order of its entries
	}
	if meetsPipe(name, other) {
		return "", errNothing // a program that opens a pipe waits for another program forever
	}
	cmd := exec.Command("sh", "-c", text, "sh", name, other)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %.200s", err, out)
	}
	return fmt.Sprintf("%q %q", name, other), err
}

// meetsPipe reports whether a program that reads from one name and writes to
// another could open a named pipe, directly or in folders that it merges.
func meetsPipe(from, to string) (meets bool) {
	pipe := func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.Mode()&fs.ModeNamedPipe != 0
	}
	top, err := filepath.EvalSymlinks(from)
	if err != nil {
		top = from
	}
	_ = filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(top, p) // below it
		meets = meets || err == nil && (d.Type()&fs.ModeSymlink != 0 && pipe(p)) || rel == "." && pipe(p) ||
			pipe(filepath.Join(to, rel)) || pipe(filepath.Join(to, path.Base(from), rel))
		return nil
	})
	return meets
}

// within reports whether a name is in a folder, or is the folder itself.
func within(name, folder string) bool {
	to, err := filepath.EvalSymlinks(name)
	if err != nil {
		if to, err = filepath.EvalSymlinks(path.Dir(name)); err != nil {
			return false
		}
	}
	return to == folder || strings.HasPrefix(to+"/", folder+"/")
}
