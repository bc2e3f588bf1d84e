//! Repeated measurements of a quantity, and their statistics.

/// Values of one quantity, one for each round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    /// A single measurement.
    pub(crate) fn of(value: f64) -> Self {
        Self(vec![value])
    }

    /// The value at this quantile as a sample of its own, for tails and maxima.
    pub(crate) fn at(&self, fraction: f64) -> Self {
        Self::of(self.quantile(fraction))
    }

    pub(crate) fn is_single(&self) -> bool {
        self.0.len() == 1
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    pub(crate) fn quantile(&self, fraction: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a position in a short list"
        )]
        let at = (fraction * last as f64).round() as usize;
        sorted.get(at).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn mean(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a short list")]
        let count = self.0.len() as f64;
        self.0.iter().sum::<f64>() / count
    }

    /// Each value divided by the same number.
    pub(crate) fn divided_by(&self, number: f64) -> Self {
        self.0.iter().map(|value| value / number).collect()
    }

    /// A number divided by each value.
    pub(crate) fn reciprocals_of(&self, number: f64) -> Self {
        self.0.iter().map(|value| number / value).collect()
    }

    /// These values divided by those of another sample, round by round: disturbances of both cancel out.
    pub(crate) fn over(&self, other: &Self) -> Self {
        self.0.iter().zip(&other.0).map(|(above, below)| above / below).collect()
    }

    /// The cumulative distribution: for each percentage, the value at that quantile.
    pub(crate) fn cumulative(&self) -> Vec<(f64, f64)> {
        let percent = (0..=100_u32).map(f64::from);
        percent.map(|percent| (self.quantile(percent / 100.0), percent)).collect()
    }

    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }
}

impl Extend<f64> for Sample {
    fn extend<T: IntoIterator<Item = f64>>(&mut self, values: T) {
        self.0.extend(values);
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<T: IntoIterator<Item = f64>>(values: T) -> Self {
        Self(values.into_iter().collect())
    }
}

/// The ratio of two medians, round by round: disturbances of both cancel out.
pub(crate) fn ratio_of_medians<'a>(rounds: impl IntoIterator<Item = (&'a Sample, &'a Sample)>) -> Sample {
    let ratio = |(above, below): (&Sample, &Sample)| above.median() / below.median();
    rounds.into_iter().map(ratio).collect()
}
