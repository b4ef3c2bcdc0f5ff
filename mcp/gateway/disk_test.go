package gateway_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// diskStep is one thing that the server of disks does.
type diskStep struct {
	Do   string `json:"do"`
	Path string `json:"path,omitempty"`
	To   string `json:"to,omitempty"` // also content, bits in octal, or what a link leads to
}

type diskSteps struct {
	Folder string     `json:"folder,omitempty"`
	Steps  []diskStep `json:"deeds"`
}

// serveDisk is a server that does to the folder STORE lies in whatever it is told, as it likes.
func serveDisk() {
	dir := filepath.Dir(os.Getenv("STORE"))
	server := sdk.NewServer(&sdk.Implementation{Name: "disk", Version: "1"}, nil)
	for _, name := range []string{"act", "look", "other"} {
		sdk.AddTool(server, &sdk.Tool{Name: name}, func(_ context.Context, _ *sdk.CallToolRequest, in diskSteps) (*sdk.CallToolResult, any, error) {
			for _, d := range in.Steps {
				if err := d.done(dir); err != nil {
					return nil, nil, fmt.Errorf("%s %s: %w", d.Do, d.Path, err)
				}
			}
			return nil, nil, nil
		})
	}
	if err := server.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
	}
}

func (d diskStep) done(dir string) error {
	at, to := filepath.Join(dir, d.Path), filepath.Join(dir, d.To)
	switch d.Do {
	case "write":
		return os.WriteFile(at, []byte(d.To), 0o644)
	case "append": // into the file itself
		f, err := os.OpenFile(at, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		if _, err = f.WriteString(d.To); err == nil {
			err = f.Close()
		}
		return err
	case "mkdir":
		return os.MkdirAll(at, 0o755)
	case "remove":
		return os.RemoveAll(at)
	case "rename":
		return os.Rename(at, to)
	case "link":
		return os.Symlink(d.To, at)
	case "name": // one more of a file
		return os.Link(at, to)
	case "chmod":
		bits, err := strconv.ParseUint(d.To, 8, 32)
		if err == nil {
			err = os.Chmod(at, os.FileMode(bits))
		}
		return err
	case "touch":
		return os.Chtimes(at, time.Unix(1, 0), time.Unix(1, 0))
	case "fail":
		return fmt.Errorf("it broke")
	case "exit":
		os.Exit(3)
	case "kill": // whoever speaks to it
		p, err := os.FindProcess(os.Getppid())
		if err == nil {
			err = p.Kill()
		}
		return err
	case "await":
		for {
			if _, err := os.Lstat(at); err == nil {
				return nil
			}
			time.Sleep(time.Millisecond) // nobody can tell it
		}
	}
	return fmt.Errorf("nobody can %q", d.Do)
}
