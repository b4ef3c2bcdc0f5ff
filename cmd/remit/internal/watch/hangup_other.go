//go:build !unix

package watch

import "os"

// hangUps gets no signals: this system has none.
func hangUps() <-chan os.Signal { return nil }
