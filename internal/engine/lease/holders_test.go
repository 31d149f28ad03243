package lease

import "testing"

func TestLeaseWhoseEndIsSeenTwiceEndsOnce(t *testing.T) {
	o := newHolders(&deps{})
	o.handed[7] = &handed{}
	if got := o.held([]int64{7, 7}); len(got) != 1 {
		t.Errorf("%d leases end", len(got))
	}
}
