package gateway

import (
	"context"
)

// ThroughSDK has the calls of a server go through the SDK, from here on.
func (g *Gateway) ThroughSDK(ctx context.Context, server string) error {
	for _, u := range g.servers {
		if u.Server.Name != server {
			continue
		}
		s, err := u.Session(ctx)
		if err != nil {
			return err
		}
		s.Exchange.UseSDK()
	}
	return nil
}

// Flying counts the calls that a server has not answered.
func (g *Gateway) Flying(server string) (n int) {
	for _, u := range g.servers {
		if s := u.Current(); s != nil && u.Server.Name == server {
			n += s.Exchange.Flights.Len()
		}
	}
	return n
}
