//! What the manager says of itself: kmsg and console early, journald when it is there.
