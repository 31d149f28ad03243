package clock

import "time"

// NapLimit is how long a [Nap] should be at most: for the rest of a longer wait a timer does as well and can be
// interrupted.
const NapLimit = 1200 * time.Microsecond
