package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/internal/sandbox"
)

// missing says how to get a layer of the sandbox, by the prefix of the layer's
// name.
func missing() [][2]string {
	return [][2]string{
		{"namespaces", "let ordinary users make user namespaces: sysctl user.max_user_namespaces above 0, and where there are these, " +
			"kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0 (or an AppArmor profile that allows " +
			"them to remit); in a container, a seccomp profile that allows clone, unshare and mount"},
		{"landlock", "run a kernel from 6.12 on, with landlock in its list of security modules (cat /sys/kernel/security/lsm)"},
		{"seccomp", "run a kernel with CONFIG_SECCOMP_FILTER"},
		{"proc", "give the container a /proc of which nothing is hidden (systempaths=unconfined), or run outside of it"},
		{"limit of processes", "run a kernel from 6.14 on, or remit as an ordinary user"},
	}
}

// checkSandbox reports how programs can be confined here, and returns the write
// mode of each root; nil if the sandbox is unavailable.
func checkSandbox(ctx context.Context, a *cli.App, f *startup.Flags, roots []string, tell func(Finding)) []*sandbox.WriteMode {
	ways := make([]*sandbox.WriteMode, len(roots))
	state := "" // unavailable: writes stay in memory, which shows the rest
	if f.Find(a) == nil && f.CheckStateOutside(roots) == nil {
		state = nearestFolder(f.StateDir)
	}
	for i, root := range roots {
		w, err := probeWriteMode(ctx, root, state)
		if i == 0 {
			tell(levelFinding(w.Protections, err))
		}
		if err == nil {
			ways[i] = &w
		}
	}
	return ways
}

// nearestFolder returns the folder, or its nearest existing parent: the disk of
// a state folder is known before the first run creates the folder.
func nearestFolder(path string) string {
	for {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return path
		}
		above := filepath.Dir(path)
		if above == path {
			return ""
		}
		path = above
	}
}

// probeWriteMode tries a root, with written files on the disk of the state folder.
func probeWriteMode(ctx context.Context, root, state string) (sandbox.WriteMode, error) {
	root, err := realPath(root)
	if err != nil {
		return sandbox.WriteMode{}, err
	}
	if state == "" {
		return sandbox.Probe(ctx, "", root, "")
	}
	upper, err := os.MkdirTemp(state, "doctor-")
	if err != nil { // checkState reports it
		return sandbox.Probe(ctx, "", root, "")
	}
	defer func() { _ = sandbox.Discard(upper) }() // a folder of doctor's own
	if upper, err = realPath(upper); err != nil {
		return sandbox.WriteMode{}, err
	}
	return sandbox.Probe(ctx, "", root, upper)
}

// realPath returns the absolute path without symbolic links.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

func levelFinding(r sandbox.Protections, err error) Finding {
	f := Finding{Where: "system", Check: "sandbox", Is: Weaker, Fix: "a policy can refuse what runs with less: require contains \"sandbox\""}
	switch {
	case err != nil:
		f.What = "level none: no program can be confined here: " + cli.PlainError(err)
		f.Fix = "give no tool that starts programs to a runtime here; Linux on amd64 or arm64 has a sandbox"
	case r.Level == sandbox.Strict:
		f.Is, f.Fix = Healthy, ""
		f.What = "programs run at level strict: namespaces of their own, Landlock (version " + strconv.Itoa(r.Landlock) + "), seccomp, no capabilities"
	default:
		f.What = "programs run at level " + r.Level.String() + "; missing: " + strings.Join(r.Missing, "; ")
		var fixes []string
		for _, known := range missing() {
			for _, m := range r.Missing {
				if strings.HasPrefix(m, known[0]+":") {
					fixes = append(fixes, known[1])
				}
			}
		}
		if len(fixes) > 0 {
			f.Fix = strings.Join(fixes, "; ")
		}
	}
	return f
}

func writeModeFinding(where string, w sandbox.WriteMode) Finding {
	if w.View == sandbox.Overlay && w.Unsupervised != "" {
		return Finding{
			Where: where, Check: "programs", Is: Weaker, What: "what a program writes lands in an overlay, in which no folder of the root can be renamed: " + w.Unsupervised,
			Fix: "run a kernel from 5.19 on, and remit outside of containers that supervise system calls themselves",
		}
	}
	if w.View == sandbox.Overlay {
		what := "what a program writes lands in an overlay: it costs by the files that are touched. "
		if w.Moves == "" {
			what += "The kernel renames its folders and keeps hard links whole"
		} else {
			what += "The sandbox renames its folders by moving their files, and a new hard link of an old file has another inode number: " + w.Moves
		}
		return Finding{Where: where, Check: "programs", Is: Healthy, What: what}
	}
	return Finding{
		Where: where, Check: "programs", Is: Weaker, What: "what a program writes lands in a copy of the root, which is kept between runs and compared after each; sockets and devices are not in it: " + w.Why,
		Fix: "give the files to yourself and your own group, and keep the state on a disk, not in an overlay of a container",
	}
}
