package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/host"
)

// Author is the author of commits.
type Author struct{ Name, Email string }

// GitAuthor returns user.name and user.email as git in dir uses them. It reads
// no other configuration. Unset values, and both values without git, are empty.
func GitAuthor(ctx context.Context, dir string) (a Author) {
	out, err := exec.CommandContext(ctx, "git", "-C", dir, "config", "--null", "--get-regexp", `^user\.(name|email)$`).Output()
	if err != nil {
		return Author{}
	}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		switch key, value, _ := strings.Cut(entry, "\n"); key {
		case "user.name":
			a.Name = value
		case "user.email":
			a.Email = value
		}
	}
	return a
}

// config returns a git configuration with the author's values, in place of the
// system configuration. Every other configuration, such as a repository's own,
// overrides it.
func (a Author) config() string {
	var b strings.Builder
	b.WriteString("[include]\n\tpath = /etc/gitconfig\n[user]\n")
	for _, v := range [][2]string{{"name", a.Name}, {"email", a.Email}} {
		if v[1] != "" {
			_, _ = fmt.Fprintf(&b, "\t%s = \"%s\"\n", v[0], strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(v[1]))
		}
	}
	return b.String()
}

// authorAge is how long an author is cached before the configuration is read
// again.
const authorAge = time.Minute

type knownAuthor struct {
	Author

	at time.Time
}

// authorFile creates the file that names the author of commits to programs in a
// root. It returns "" if there is no author.
func (d *Driver) authorFile(ctx context.Context, on host.Host, dir string) (string, error) {
	if d.cfg.Author == nil {
		return "", nil
	}
	const patience = 5 * time.Second
	ctx, cancel := on.WithTimeout(ctx, patience, ErrTimeout)
	defer cancel()
	now := on.Now()
	d.mu.Lock()
	known, ok := d.authors[dir]
	d.mu.Unlock()
	if !ok || now.Sub(known.at) >= authorAge || now.Before(known.at) {
		known = knownAuthor{d.cfg.Author(ctx, dir), now}
		d.mu.Lock()
		d.authors[dir] = known
		d.mu.Unlock()
	}
	if known.Author == (Author{}) {
		return "", nil
	}
	return d.keepAuthor(known.config())
}

// keepAuthor writes a configuration under a name that its content determines.
func (d *Driver) keepAuthor(text string) (string, error) {
	if err := os.MkdirAll(d.cfg.Scratch, 0o700); err != nil {
		return "", err
	}
	if err := private(d.cfg.Scratch); err != nil {
		return "", err
	}
	sum := string(canon.Sum("remit/author/v1", []byte(text)))
	path := filepath.Join(d.cfg.Scratch, "remit-author-"+sum[strings.LastIndexByte(sum, ':')+1:])
	if had, err := os.ReadFile(path); err == nil && string(had) == text {
		return path, nil
	}
	f, err := os.CreateTemp(d.cfg.Scratch, "remit-author-new-")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return path, nil
}
