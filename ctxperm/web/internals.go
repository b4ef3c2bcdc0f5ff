package web

import (
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/verify"
)

// init gives package agent the view of a client. A tool that called it could
// read versions from a service without authorization.
func init() {
	handleaccess.InstallView(func(driver any) (handleaccess.DriverView, bool) {
		c, ok := driver.(interface {
			view([]effect.Change) verify.ResourceView
		})
		if !ok {
			return handleaccess.DriverView{}, false
		}
		return handleaccess.DriverView{Kinds: []perm.Kind{perm.KindHTTPS, perm.KindHTTP}, View: c.view}, true
	})
}
