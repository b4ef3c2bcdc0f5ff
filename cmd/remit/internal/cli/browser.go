package cli

import (
	"os/exec"
	"runtime"
)

// OpenPage opens a page in the user's browser. It does not wait for the
// browser.
func OpenPage(page string) error {
	words := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		words = []string{"open"}
	case "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.Command(words[0], append(words[1:], page)...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // the process may last as long as the browser
	return nil
}
