"""Published figures as data, each with its public source. `chips.json` is read by `mtfcore.chips`."""
