// Package first makes a program the client of the resident process before most
// other packages are initialized.
package first

import "github.com/remit-dev/remit/internal/hookclient"

var _ = begin()

func begin() bool {
	hookclient.Main()
	return true
}
